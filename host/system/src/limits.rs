//! How much memory the system lets this process have: what the machine has left, what the memory cgroups leave that it runs in (a
//! container's, a batch job's, a service's), and what its own limits do.

use crate::input;
use crate::words;
use std::path::Path;

/// Bytes of memory that can still be had; none where the system does not tell.
pub fn available() -> Option<u64> {
    [of_machine(), of_cgroups(Path::new("/")), addresses()].into_iter().flatten().min()
}

#[cfg(target_os = "linux")]
fn of_machine() -> Option<u64> {
    available_in(&input::text("/proc/meminfo", input::DESCRIPTION).ok()?)
}

/// What `meminfo` says can be had without swapping.
#[cfg(target_os = "linux")]
fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(not(target_os = "linux"))]
fn of_machine() -> Option<u64> {
    let mut system = sysinfo::System::new().ok()?;
    system.refresh_memory();
    (system.total_memory() > 0).then(|| system.available_memory())
}

/// How many threads of the system can be had that take so many `bytes` each: `wanted`, or as many as there are addresses for.
pub fn workers(wanted: usize, bytes: u64) -> u64 {
    /// What a thread of the system takes at most before it does anything: its stack, and the allocator's part for it.
    const WORKER: u64 = (2 + 128) << 20;
    let room = addresses().map_or(u64::MAX, |left| left / (WORKER + bytes));
    (wanted as u64).min(room).max(1)
}

/// Bytes of addresses that can still be had; none if the process has no limit of them (`ulimit -v`).
#[cfg(target_os = "linux")]
pub fn addresses() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: it is where the call puts a limit.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
    if !known || limit.rlim_cur == libc::RLIM_INFINITY {
        return None;
    }
    let text = input::text("/proc/self/statm", input::DESCRIPTION).ok()?;
    let pages: u64 = text.split(' ').next()?.parse().ok()?;
    // SAFETY: it takes and gives a number.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    Some((limit.rlim_cur + words::kept()).saturating_sub(pages * page))
}

#[cfg(not(target_os = "linux"))]
pub fn addresses() -> Option<u64> {
    None
}

/// Bytes that the memory cgroups leave which this process is in, each within the next; none if none has a limit. The system's
/// files are those under `root`.
fn of_cgroups(root: &Path) -> Option<u64> {
    let read = |file: &str| input::text(root.join(file), input::SOURCE).ok();
    let (groups, mounts) = (read("proc/self/cgroup")?, read("proc/self/mountinfo")?);
    let of_group = |line: &str| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, Path::new(fields.next()?));
        let version = match controllers {
            "" => &V2,
            _ if controllers.split(',').any(|controller| controller == "memory") => &V1,
            _ => return None,
        };
        let (of_mount, folder) = mounts.lines().find_map(|line| mount(line, version))?;
        // A group that cannot be seen from here is within the one that can.
        let inside =
            path.strip_prefix(of_mount).ok().filter(|inside| !inside.starts_with("..")).unwrap_or(Path::new(""));
        let folder = root.join(folder.trim_start_matches('/'));
        let inner = folder.join(inside);
        inner.ancestors().take_while(|group| group.starts_with(&folder)).filter_map(|group| version.left(group)).min()
    };
    groups.lines().filter_map(of_group).min()
}

/// The group that a line of `mountinfo` mounts, and where, if it mounts such groups.
fn mount<'a>(line: &'a str, version: &Version) -> Option<(&'a str, &'a str)> {
    let (mounted, what) = line.split_once(" - ")?;
    let mut what = what.split(' ');
    let is_one =
        what.next()? == version.kind && (version.kind == V2.kind || what.nth(1)?.split(',').any(|of| of == "memory"));
    let mut mounted = mounted.split(' ').skip(3);
    is_one.then_some((mounted.next()?, mounted.next()?))
}

/// The names of a generation of cgroups.
struct Version {
    /// The kind of its file system.
    kind: &'static str,
    limits: &'static [&'static str],
    usage: &'static str,
    /// What of the usage are files that the system drops when it needs their memory.
    files: [&'static str; 2],
}

const V1: Version = Version {
    kind: "cgroup",
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    files: ["total_active_file", "total_inactive_file"],
};

const V2: Version = Version {
    kind: "cgroup2",
    limits: &["memory.max", "memory.high"],
    usage: "memory.current",
    files: ["active_file", "inactive_file"],
};

impl Version {
    /// Bytes that a group leaves to those in it; none if it has no limit.
    fn left(&self, group: &Path) -> Option<u64> {
        let read = |file: &str| input::text(group.join(file), input::DESCRIPTION).ok();
        let number = |file: &str| read(file)?.trim().parse::<u64>().ok();
        let limit = self.limits.iter().filter_map(|file| number(file)).min()?;
        let files = read("memory.stat").unwrap_or_default();
        let files = files.lines().filter_map(|line| line.split_once(' ')).filter(|(name, _)| self.files.contains(name));
        let files = files.filter_map(|(_, bytes)| bytes.parse::<u64>().ok()).sum::<u64>();
        Some(limit.saturating_sub(number(self.usage).unwrap_or(0).saturating_sub(files)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_machine_says_what_can_be_had() {
        let meminfo = "MemTotal:       16384 kB\nMemFree:  1024 kB\nMemAvailable:    8192 kB\nCached: 1 kB\n";
        assert_eq!(available_in(meminfo), Some(8 << 20));
        assert_eq!(available_in("MemTotal: 16384 kB\n"), None);
        assert!(of_machine().is_some_and(|bytes| bytes > 0), "/proc/meminfo says nothing");
    }

    /// What the groups leave in a tree of these files.
    fn left(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().expect("a folder");
        for (file, text) in files {
            let file = root.path().join(file);
            std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            std::fs::write(file, text).expect("a file");
        }
        of_cgroups(root.path())
    }

    const V2_MOUNT: (&str, &str) = (
        "proc/self/mountinfo",
        "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n",
    );

    #[test]
    fn a_service_has_what_the_narrowest_of_the_groups_around_it_leaves() {
        let files = [
            V2_MOUNT,
            ("proc/self/cgroup", "0::/user.slice/user-1000.slice/run-7.scope\n"),
            ("sys/fs/cgroup/user.slice/memory.max", "max\n"),
            ("sys/fs/cgroup/user.slice/memory.current", "90000\n"),
            ("sys/fs/cgroup/user.slice/user-1000.slice/memory.max", "10000\n"),
            ("sys/fs/cgroup/user.slice/user-1000.slice/memory.high", "max\n"),
            ("sys/fs/cgroup/user.slice/user-1000.slice/memory.current", "8000\n"),
            (
                "sys/fs/cgroup/user.slice/user-1000.slice/memory.stat",
                "anon 4000\nactive_file 1500\ninactive_file 500\n",
            ),
            ("sys/fs/cgroup/user.slice/user-1000.slice/run-7.scope/memory.max", "9000\n"),
            ("sys/fs/cgroup/user.slice/user-1000.slice/run-7.scope/memory.current", "1000\n"),
        ];
        assert_eq!(left(&files), Some(4000), "the slice, less what is not dropped of 8000 bytes");
        let high = ("sys/fs/cgroup/user.slice/user-1000.slice/run-7.scope/memory.high", "3000\n");
        assert_eq!(left(&[&files[..], &[high]].concat()), Some(2000));
        assert_eq!(left(&files[..4]), None, "no limit");
        assert_eq!(left(&files[1..]), None, "nothing is mounted");
    }

    #[test]
    fn a_job_has_what_its_version_1_groups_leave() {
        let files = [
            (
                "proc/self/mountinfo",
                "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                 32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                 33 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
            ),
            ("proc/self/cgroup", "5:memory:/slurm/uid_7/job_1/step_0\n4:cpu:/slurm\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/slurm/uid_7/job_1/memory.limit_in_bytes", "5000\n"),
            ("sys/fs/cgroup/memory/slurm/uid_7/job_1/memory.usage_in_bytes", "4000\n"),
            (
                "sys/fs/cgroup/memory/slurm/uid_7/job_1/memory.stat",
                "active_file 1\ntotal_active_file 700\ntotal_inactive_file 300\n",
            ),
            ("sys/fs/cgroup/memory/slurm/uid_7/job_1/step_0/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/fs/cgroup/memory/slurm/uid_7/job_1/step_0/memory.usage_in_bytes", "4000\n"),
        ];
        assert_eq!(left(&files), Some(2000));
    }

    #[test]
    fn a_container_has_what_the_groups_leave_that_it_sees() {
        let limit = [("sys/fs/cgroup/memory.max", "7000"), ("sys/fs/cgroup/memory.current", "1000")];
        let outside = [V2_MOUNT, ("proc/self/cgroup", "0::/../../init.scope")];
        assert_eq!(left(&[&outside[..], &limit].concat()), Some(6000), "its own group is outside of what it sees");
        let part = [
            ("proc/self/mountinfo", "30 24 0:26 /docker/12 /sys/fs/cgroup ro - cgroup2 cgroup rw"),
            ("proc/self/cgroup", "0::/docker/12"),
        ];
        assert_eq!(left(&[&part[..], &limit].concat()), Some(6000), "a part of the groups is mounted");
    }

    #[test]
    fn the_system_tells() {
        assert!(available().is_some_and(|bytes| bytes > 1 << 20), "{:?}", available());
    }
}

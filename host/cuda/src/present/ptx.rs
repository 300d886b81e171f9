//! The PTX: what it needs, and its way to the driver's compiler.

use super::error::{GpuError, Named, Version};
use cust::module::{Module, ModuleJitOption};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

unsafe extern "C" {
    fn cuModuleLoadDataEx(
        module: *mut *mut c_void,
        image: *const c_char,
        option_count: c_uint,
        options: *const c_uint,
        values: *mut *mut c_void,
    ) -> c_int;
}

/// A PTX module's text, and what it says of itself.
pub(super) struct Ptx {
    text: CString,
    /// The version of the language.
    pub(super) version: Version,
    /// The compute capability it is for, times ten.
    pub(super) target: u32,
}

impl Ptx {
    pub(super) fn new(text: &str) -> Result<Self, GpuError> {
        let directive = |name| text.lines().find_map(|line| line.trim_start().strip_prefix(name)).map(str::trim);
        let version = directive(".version ").and_then(|version| {
            let (major, minor) = version.split_once('.')?;
            Some(Version { major: major.parse().ok()?, minor: minor.parse().ok()? })
        });
        let target = directive(".target sm_").and_then(|target| {
            let end = target.find(|c: char| !c.is_ascii_digit()).unwrap_or(target.len());
            target[..end].parse().ok()
        });
        Ok(Self {
            text: CString::new(text).map_err(|_| GpuError::NotPtx { problem: "a byte 0 in its text" })?,
            version: version.ok_or(GpuError::NotPtx { problem: "no `.version X.Y`" })?,
            target: target.ok_or(GpuError::NotPtx { problem: "no `.target sm_NN`" })?,
        })
    }

    /// The CUDA release that brought the language's version; none where the numbers are not known yet.
    fn cuda_release(&self) -> Option<Version> {
        let Version { major, minor } = self.version;
        let (major, minor) = match (major, minor) {
            (6, 0..=2) => (9, minor),
            (6, 3..=5) => (10, minor - 3),
            (7, 0..=8) => (11, minor),
            (8, 0..=5) => (12, minor),
            // CUDA 12.6 kept PTX 8.5.
            (8, 6..=8) => (12, minor + 1),
            (9, 0..=1) => (13, minor),
            _ => return None,
        };
        Some(Version { major, minor })
    }

    /// Whether a driver for this CUDA release takes the language's version, as far as that is known.
    pub(super) fn accepted_by(&self, driver: Version) -> Result<(), GpuError> {
        match self.cuda_release() {
            Some(needs) if driver < needs => Err(GpuError::DriverTooOld { driver, ptx: self.version, needs }),
            _ => Ok(()),
        }
    }

    /// Compiles it for the current context's GPU, with its line table, which profilers read.
    pub(super) fn load(&self) -> Result<Module, GpuError> {
        Module::from_ptx_cstr(&self.text, &[ModuleJitOption::GenerateLineInfo(true)])
            .named("cuModuleLoadDataEx")
            .map_err(|error| {
                // `cust` offers no log, so a text that failed is compiled once more for its log alone.
                GpuError::ModuleRejected { error, log: rejection_log(&self.text) }
            })
    }
}

/// What the driver's compiler says of a PTX text that it refuses.
fn rejection_log(ptx: &CStr) -> String {
    const ERROR_LOG_BUFFER: c_uint = 5;
    const ERROR_LOG_BUFFER_SIZE_BYTES: c_uint = 6;
    let mut log = vec![0u8; 16 << 10];
    let options = [ERROR_LOG_BUFFER, ERROR_LOG_BUFFER_SIZE_BYTES];
    // A size goes in the pointer's place.
    let mut values = [log.as_mut_ptr().cast(), log.len() as *mut c_void];
    let mut module = std::ptr::null_mut();
    // SAFETY: image, options and values are as long as the call takes them, and `log` as its size says. A module that
    // loads after all goes with the context.
    unsafe { cuModuleLoadDataEx(&raw mut module, ptx.as_ptr(), 2, options.as_ptr(), values.as_mut_ptr()) };
    CStr::from_bytes_until_nul(&log).map(|log| log.to_string_lossy().trim_end().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_and_target() {
        let ptx = Ptx::new("// a header\n.version 7.0\n.target sm_80, debug\n.address_size 64\n").unwrap();
        assert_eq!((ptx.version, ptx.target), (Version { major: 7, minor: 0 }, 80));
        let ptx = Ptx::new("\t.version 8.6\r\n\t.target sm_100a\r\n").unwrap();
        assert_eq!((ptx.version, ptx.target), (Version { major: 8, minor: 6 }, 100));
        for (text, problem) in [
            ("", "`.version"),
            (".version seven", "`.version"),
            (".version 7.0\n.target sm_", "`.target"),
            (".version 7.0\n.target sm_80\n\0", "byte 0"),
        ] {
            let error = Ptx::new(text).err().unwrap().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_driver_takes_the_ptx_of_its_release_and_of_those_before() {
        let ptx = |version| Ptx::new(&format!(".version {version}\n.target sm_80")).unwrap();
        let driver = |major, minor| Version { major, minor };
        for (version, driver) in [("7.0", driver(11, 0)), ("8.8", driver(12, 9)), ("8.8", driver(13, 0))] {
            assert!(ptx(version).accepted_by(driver).is_ok(), "PTX {version} by a driver for CUDA {driver}");
        }
        for (version, driver) in [("7.0", driver(10, 2)), ("8.8", driver(12, 8)), ("8.8", driver(12, 4))] {
            let error = ptx(version).accepted_by(driver).expect_err("newer than the driver").to_string();
            assert!(error.contains(version) && error.contains(&driver.to_string()), "{error}");
        }
    }

    /// Rows of the table "PTX Release History" of the PTX ISA.
    #[test]
    fn cuda_releases() {
        for (ptx, cuda) in [
            ("6.0", Some("9.0")),
            ("6.3", Some("10.0")),
            ("6.5", Some("10.2")),
            ("7.0", Some("11.0")),
            ("7.8", Some("11.8")),
            ("8.0", Some("12.0")),
            ("8.5", Some("12.5")),
            ("8.6", Some("12.7")),
            ("8.8", Some("12.9")),
            ("9.0", Some("13.0")),
            ("5.0", None),
            ("9.9", None),
        ] {
            let release = Ptx::new(&format!(".version {ptx}\n.target sm_80")).unwrap().cuda_release();
            assert_eq!(release.map(|release| release.to_string()).as_deref(), cuda, "PTX {ptx}");
        }
    }
}

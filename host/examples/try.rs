use gpu::suite::*;
use std::sync::Arc;
use std::time::Instant;
static S: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(2048);
fn main() {
    if let Some(s) = std::env::args().nth(3) {
        S.store(s.parse().unwrap(), std::sync::atomic::Ordering::Relaxed);
    }
    let threads: usize = std::env::args().nth(1).map_or(1, |s| s.parse().unwrap());
    for f in gpu::kernels::FAMILIES {
        for e in f.kernels {
            if let Some(k) = std::env::args().nth(2) {
                if e.kernel.name != k {
                    continue;
                }
            }
            let values = f
                .axes
                .iter()
                .map(|a| {
                    (
                        a.name,
                        if a.name == "elements" {
                            Value::Count(1 << 22)
                        } else if a.name == "shape" {
                            Value::Shape(S.load(std::sync::atomic::Ordering::Relaxed), 2048)
                        } else if a.name == "offset" {
                            Value::Count(1)
                        } else {
                            a.in_simulator[0]
                        },
                    )
                })
                .collect();
            let case = Case { values, sm_count: 108 };
            let plan = Arc::new((e.plan)(&case).unwrap());
            let t = Instant::now();
            let o = busload::sim::simulate(
                e.kernel,
                plan.clone(),
                &busload::sim::Options { threads, ..Default::default() },
                &|_, _| (),
            )
            .unwrap();
            let d = t.elapsed().as_secs_f64();
            let lanes: u64 = o.sites.iter().map(|s| s.counts.lanes).sum();
            let t = Instant::now();
            let v = busload::verify::verify(&plan, |b, i| o.bits(b, i).unwrap());
            for x in &plan.expected {
                let got = o.regions.get(&(x.buffer.to_string(), x.operation, x.width.into()));
                if got != Some(&x.counts) {
                    println!("{} {:?}\n got {:?}", e.kernel.name, x, got);
                }
            }
            println!(
                "{:30} {:6.3}s {:7.1} M/s  verify {:?} {:.3}s {:?}",
                e.kernel.name,
                d,
                lanes as f64 / d / 1e6,
                v.is_ok(),
                t.elapsed().as_secs_f64(),
                o.findings
            );
            if let Err(e) = v {
                println!("{e}");
            }
        }
    }
}

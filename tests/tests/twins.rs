//! The twins in CUDA C++: each has the parameters of its kernel, since it is launched with the same words.

use busload_tests::{kernels, root};
use gpu::device::host::ParameterKind;
use gpu::suite::Element;
use std::collections::BTreeMap;

/// The kernels of a CUDA C++ source: of `KERNEL name(type name, …) {` the name, and each parameter as it stands there.
fn twins(source: &str) -> BTreeMap<&str, Vec<&str>> {
    let twins = source.split("\nKERNEL ").skip(1).map(|twin| {
        let (name, rest) = twin.split_once('(').expect("a name, then parameters");
        let (parameters, _) = rest.split_once(')').expect("an end of the parameters");
        (name, parameters.split(',').map(str::trim).collect())
    });
    twins.collect()
}

/// What the type and the name of a parameter say of it.
fn read(parameter: &str) -> (&str, ParameterKind) {
    let (ty, name) = parameter.rsplit_once(' ').expect("a type and a name");
    let element = |ty: &str| match ty {
        "char" => Element::I8,
        "f16" => Element::F16,
        "bf16" => Element::BF16,
        "unsigned" => Element::U32,
        "float" | "float4" | "Particle" | "Quad" => Element::F32,
        "size_t" => Element::U64,
        "double" => Element::F64,
        _ => panic!("`{parameter}` is neither a pointer nor of a type that kernels take"),
    };
    let kind = match ty.strip_suffix('*').map(|to| (to.strip_prefix("const "), to)) {
        Some((Some(to), _)) => ParameterKind::Global(element(to.trim())),
        Some((None, to)) => ParameterKind::GlobalMut(element(to.trim())),
        None => ParameterKind::Plain(element(ty)),
    };
    (name, kind)
}

#[test]
fn a_twin_takes_the_arguments_of_its_kernel() {
    let source = std::fs::read_to_string(root().join("results/peers/peers.cu")).expect("results/peers/peers.cu");
    let twins = twins(&source);
    assert!(!twins.is_empty(), "results/peers/peers.cu has no kernel");
    let kernels = kernels();
    for (name, parameters) in twins {
        let entry = kernels.iter().find(|(_, entry)| entry.kernel.name == name);
        let kernel =
            entry.unwrap_or_else(|| panic!("{name} in results/peers/peers.cu is the twin of no kernel")).1.kernel;
        let parameters: Vec<_> = parameters.into_iter().map(read).collect();
        assert_eq!(parameters, kernel.parameters, "the twin of {name}");
        for (array, bytes) in kernel.constants {
            let declared = format!("__constant__ float {name}_{array}[{}];", bytes / 4);
            assert!(source.contains(&declared), "results/peers/peers.cu lacks `{declared}`");
        }
    }
}

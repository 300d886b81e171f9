//! The facade as a table: what kernels may use, what it becomes in PTX, what CUDA calls it, and what a machine counts of it.
//!
//! `busload list --primitives` prints it. A test holds it to the facade's functions, both ways.

/// Something of the facade that kernels use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Primitive {
    /// What the facade calls it: a name of the prelude.
    pub name: &'static str,
    /// The PTX that it becomes.
    pub ptx: &'static str,
    /// What it is in CUDA C++.
    pub cuda: &'static str,
    /// What of it is counted.
    pub counts: Counted,
}

/// What is counted of a primitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Nothing: it asks nothing of the memory system.
    Nothing,
    /// Requests of global memory that read.
    GlobalLoad,
    /// Requests of global memory that write.
    GlobalStore,
    /// Atomic requests of global memory.
    GlobalAtomic,
    /// Requests of shared memory that read.
    SharedLoad,
    /// Requests of shared memory that write.
    SharedStore,
    /// Atomic requests of shared memory.
    SharedAtomic,
    /// Requests of constant memory.
    ConstantLoad,
    /// One request of global memory that reads, and one of shared memory that writes.
    Copy,
    /// What it is loaded and stored by says it: this says how wide that is.
    Width,
    /// Nothing, though it may be memory: what a thread has for itself is seen by nobody else.
    Local,
}

impl Counted {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "-",
            Self::GlobalLoad => "global load",
            Self::GlobalStore => "global store",
            Self::GlobalAtomic => "global atomic",
            Self::SharedLoad => "shared load",
            Self::SharedStore => "shared store",
            Self::SharedAtomic => "shared atomic",
            Self::ConstantLoad => "constant load",
            Self::Copy => "global load, shared store",
            Self::Width => "as the access",
            Self::Local => "- (local memory)",
        }
    }

    /// The counter of Nsight Compute that has its requests; none if nothing is counted.
    pub const fn counter(self) -> Option<&'static str> {
        match self {
            Self::GlobalLoad => Some("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
            Self::GlobalStore => Some("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"),
            Self::GlobalAtomic => Some("l1tex__t_requests_pipe_lsu_mem_global_op_{red,atom}.sum"),
            Self::SharedLoad => Some("smsp__sass_inst_executed_op_shared_ld.sum"),
            Self::SharedStore => Some("smsp__sass_inst_executed_op_shared_st.sum"),
            Self::SharedAtomic => Some("smsp__inst_executed_op_shared_atom.sum"),
            Self::Copy => Some("smsp__sass_inst_executed_op_ldgsts.sum"),
            Self::Nothing | Self::ConstantLoad | Self::Width | Self::Local => None,
        }
    }
}

macro_rules! primitives { ($($name:literal: $ptx:literal, $cuda:literal, $counts:ident;)*) => {
    /// Every primitive, in the order of the facade's files.
    pub static PRIMITIVES: &[Primitive] =
        &[$(Primitive { name: $name, ptx: $ptx, cuda: $cuda, counts: Counted::$counts }),*];
} }

primitives! {
    "kernel": ".entry", "__global__", Nothing;
    "device": "inlined", "__device__", Nothing;

    "Global::load": "ld.global", "p[i]", GlobalLoad;
    "Global::load_cg": "ld.global.cg", "__ldcg", GlobalLoad;
    "Global::load_cs": "ld.global.cs", "__ldcs", GlobalLoad;
    "Global::load_nc": "ld.global.nc", "__ldg", GlobalLoad;
    "GlobalMut::store": "st.global", "p[i] = x", GlobalStore;
    "Global::load_volatile": "ld.volatile.global", "*(volatile T *)p", GlobalLoad;
    "GlobalMut::store_volatile": "st.volatile.global", "*(volatile T *)p = x", GlobalStore;
    "GlobalMut::atomic_add": "atom.add, RED if unused", "atomicAdd", GlobalAtomic;
    "GlobalMut::atomic_sub": "atom.add", "atomicSub", GlobalAtomic;
    "GlobalMut::atomic_min": "atom.min", "atomicMin", GlobalAtomic;
    "GlobalMut::atomic_max": "atom.max", "atomicMax", GlobalAtomic;
    "GlobalMut::atomic_and": "atom.and", "atomicAnd", GlobalAtomic;
    "GlobalMut::atomic_or": "atom.or", "atomicOr", GlobalAtomic;
    "GlobalMut::atomic_xor": "atom.xor", "atomicXor", GlobalAtomic;
    "GlobalMut::atomic_exch": "atom.exch", "atomicExch", GlobalAtomic;
    "GlobalMut::atomic_cas": "atom.cas", "atomicCAS", GlobalAtomic;
    "GlobalMut::atomic_inc": "atom.inc", "atomicInc", GlobalAtomic;
    "GlobalMut::atomic_dec": "atom.dec", "atomicDec", GlobalAtomic;
    "GlobalMut::atomic_add_block": "atom.cta.add, so all", "atomicAdd_block", GlobalAtomic;
    "GlobalMut::atomic_add_system": "atom.sys.add, so all", "atomicAdd_system", GlobalAtomic;
    "Global::starting_at": "add", "p + i", Nothing;
    "Global::cast": "none", "reinterpret_cast", Nothing;

    "shared": ".shared", "__shared__", Nothing;
    "dynamic_shared": ".extern .shared", "extern __shared__", Nothing;
    "Shared::load": "ld.volatile.shared", "tile[i]", SharedLoad;
    "Shared::store": "st.volatile.shared", "tile[i] = x", SharedStore;
    "Shared::load_relaxed": "ld.relaxed.cta.shared", "atomic_ref::load", SharedLoad;
    "Shared::store_relaxed": "st.relaxed.cta.shared", "atomic_ref::store", SharedStore;
    "Shared::atomic_add": "atom.shared.add", "atomicAdd", SharedAtomic;
    "Shared::atomic_sub": "atom.shared.add", "atomicSub", SharedAtomic;
    "Shared::atomic_min": "atom.shared.min", "atomicMin", SharedAtomic;
    "Shared::atomic_max": "atom.shared.max", "atomicMax", SharedAtomic;
    "Shared::atomic_and": "atom.shared.and", "atomicAnd", SharedAtomic;
    "Shared::atomic_or": "atom.shared.or", "atomicOr", SharedAtomic;
    "Shared::atomic_xor": "atom.shared.xor", "atomicXor", SharedAtomic;
    "Shared::atomic_exch": "atom.shared.exch", "atomicExch", SharedAtomic;
    "Shared::atomic_cas": "atom.shared.cas", "atomicCAS", SharedAtomic;
    "Shared::atomic_inc": "atom.shared.inc", "atomicInc", SharedAtomic;
    "Shared::atomic_dec": "atom.shared.dec", "atomicDec", SharedAtomic;
    "Shared::copy_async": "cp.async.ca, cp.async.cg", "__pipeline_memcpy_async", Copy;
    "copy_async::commit_group": "cp.async.commit_group", "__pipeline_commit", Nothing;
    "copy_async::wait_group": "cp.async.wait_group", "__pipeline_wait_prior", Nothing;
    "copy_async::wait_all": "cp.async.wait_all", "__pipeline_wait_prior(0)", Nothing;

    "constant": ".const", "__constant__", Nothing;
    "Constant::load": "ld.const", "table[i]", ConstantLoad;

    "f16": ".b16", "__half", Width;
    "bf16": ".b16", "__nv_bfloat16", Width;
    "I8x2": ".b16", "char2", Width;
    "I8x4": ".b32", "char4", Width;
    "I8x8": ".v2.b32", "-", Width;
    "I8x16": ".v4.b32", "-", Width;
    "U8x2": ".b16", "uchar2", Width;
    "U8x4": ".b32", "uchar4", Width;
    "U8x8": ".v2.b32", "-", Width;
    "U8x16": ".v4.b32", "-", Width;
    "I16x2": ".b32", "short2", Width;
    "I16x4": ".v2.b32", "short4", Width;
    "I16x8": ".v4.b32", "-", Width;
    "U16x2": ".b32", "ushort2", Width;
    "U16x4": ".v2.b32", "ushort4", Width;
    "U16x8": ".v4.b32", "-", Width;
    "F16x2": ".b32", "__half2", Width;
    "F16x4": ".v2.b32", "-", Width;
    "F16x8": ".v4.b32", "-", Width;
    "Bf16x2": ".b32", "__nv_bfloat162", Width;
    "Bf16x4": ".v2.b32", "-", Width;
    "Bf16x8": ".v4.b32", "-", Width;
    "I32x2": ".v2.b32", "int2", Width;
    "I32x4": ".v4.b32", "int4", Width;
    "U32x2": ".v2.b32", "uint2", Width;
    "U32x4": ".v4.b32", "uint4", Width;
    "F32x2": ".v2.b32", "float2", Width;
    "F32x4": ".v4.b32", "float4", Width;
    "I64x2": ".v2.b64", "longlong2", Width;
    "U64x2": ".v2.b64", "ulonglong2", Width;
    "F64x2": ".v2.b64", "double2", Width;
    "F32x4::from_array": "mov", "make_float4", Nothing;
    "F32x4::splat": "mov", "make_float4", Nothing;
    "F32x4::to_array": "mov", "v.x, v.y, v.z, v.w", Nothing;
    "[T; N]": "ld.local, st.local", "T a[N]", Local;

    "thread::thread_idx_x": "%tid.x", "threadIdx.x", Nothing;
    "thread::thread_idx_y": "%tid.y", "threadIdx.y", Nothing;
    "thread::thread_idx_z": "%tid.z", "threadIdx.z", Nothing;
    "thread::block_idx_x": "%ctaid.x", "blockIdx.x", Nothing;
    "thread::block_idx_y": "%ctaid.y", "blockIdx.y", Nothing;
    "thread::block_idx_z": "%ctaid.z", "blockIdx.z", Nothing;
    "thread::block_dim_x": "%ntid.x", "blockDim.x", Nothing;
    "thread::block_dim_y": "%ntid.y", "blockDim.y", Nothing;
    "thread::block_dim_z": "%ntid.z", "blockDim.z", Nothing;
    "thread::grid_dim_x": "%nctaid.x", "gridDim.x", Nothing;
    "thread::grid_dim_y": "%nctaid.y", "gridDim.y", Nothing;
    "thread::grid_dim_z": "%nctaid.z", "gridDim.z", Nothing;
    "thread::index_x": "mad", "first + threadIdx.x", Nothing;
    "thread::count_x": "mul", "gridDim.x * blockDim.x", Nothing;

    "warp::lane_id": "%laneid", "threadIdx.x % 32", Nothing;
    // Of 64 bits, two each.
    "warp::shuffle": "shfl.sync.idx", "__shfl_sync", Nothing;
    "warp::shuffle_up": "shfl.sync.up", "__shfl_up_sync", Nothing;
    "warp::shuffle_down": "shfl.sync.down", "__shfl_down_sync", Nothing;
    "warp::shuffle_xor": "shfl.sync.bfly", "__shfl_xor_sync", Nothing;
    "warp::ballot": "vote.sync.ballot", "__ballot_sync", Nothing;
    "warp::any": "vote.sync.any", "__any_sync", Nothing;
    "warp::all": "vote.sync.all", "__all_sync", Nothing;
    "warp::match_any": "match.any.sync", "__match_any_sync", Nothing;
    "warp::activemask": "activemask", "__activemask", Nothing;
    "warp::reduce_add": "redux.sync.add", "__reduce_add_sync", Nothing;
    "warp::reduce_min": "redux.sync.min", "__reduce_min_sync", Nothing;
    "warp::reduce_max": "redux.sync.max", "__reduce_max_sync", Nothing;
    "warp::reduce_and": "redux.sync.and", "__reduce_and_sync", Nothing;
    "warp::reduce_or": "redux.sync.or", "__reduce_or_sync", Nothing;
    "warp::reduce_xor": "redux.sync.xor", "__reduce_xor_sync", Nothing;

    "steps": "a loop", "for (i = a; i < b; i += c)", Nothing;
    "each": "a loop", "for (x : range)", Nothing;
    "unroll": "straight-line code", "#pragma unroll", Nothing;

    "threadfence_block": "membar.cta", "__threadfence_block", Nothing;
    "threadfence": "membar.gl", "__threadfence", Nothing;
    "threadfence_system": "membar.sys", "__threadfence_system", Nothing;

    "math::rcp": "rcp.approx.f32", "__frcp_rn, less exact", Nothing;
    "math::sqrt": "sqrt.approx.f32", "sqrtf, fast math", Nothing;
    "math::rsqrt": "rsqrt.approx.f32", "rsqrtf", Nothing;
    "math::sin": "sin.approx.f32", "__sinf", Nothing;
    "math::cos": "cos.approx.f32", "__cosf", Nothing;
    "math::exp2": "ex2.approx.f32", "exp2f, fast math", Nothing;
    "math::log2": "lg2.approx.f32", "__log2f", Nothing;
    "math::tanh": "tanh.approx.f32", "tanhf, fast math", Nothing;

    "sync_threads": "bar.sync", "__syncthreads", Nothing;
    "sync_warp": "bar.warp.sync", "__syncwarp", Nothing;
    "clock": "%clock64", "clock64", Nothing;
    "fma": "fma.rn", "__fmaf_rn", Nothing;
    "byte_perm": "prmt.b32", "__byte_perm", Nothing;
    "at": "mad", "y * pitch + x", Nothing;
}

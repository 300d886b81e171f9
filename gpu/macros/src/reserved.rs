//! Names that others have: a kernel's name is a symbol of its PTX, and of the `extern "C"` twin that nvcc compiles.

/// Whose the name `name` is, if it is not free for a kernel.
pub(crate) fn owner(name: &str) -> Option<&'static str> {
    let listed = |names: &str| names.split_ascii_whitespace().any(|other| other == name);
    let of_double = |name: &str| MATHEMATICS.split_ascii_whitespace().any(|other| other == name);
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if begins(&["__", "llvm"]) {
        Some("compilers")
    } else if begins(&["cuda", "pthread_"]) || listed(CUDA) {
        Some(if name.starts_with("pthread_") { "C's library" } else { "CUDA" })
    } else if listed(C) || listed(MATHEMATICS) || name.strip_suffix('f').is_some_and(of_double) {
        Some("C's library")
    } else {
        None
    }
}

/// What nvcc knows in every file.
const CUDA: &str = "atomicAdd atomicSub atomicExch atomicMin atomicMax atomicInc atomicDec atomicCAS atomicAnd atomicOr atomicXor \
    clock64 cospi dim3 erfcinv erfcx erfinv globaltimer max min nanosleep norm normcdf normcdfinv rcbrt rhypot rnorm rsqrt \
    sincos sincospi sinpi threadIdx blockIdx blockDim gridDim trap vprintf warpSize";

/// Of the functions of C and POSIX those that a program has at hand in C, and that compilers know by their names.
const C: &str = "abort abs accept access alarm aligned_alloc alloca asctime assert atexit atof atoi atol atoll bcmp bcopy bind bsearch \
    bzero calloc chdir chmod chown clearerr clock clock_gettime close closedir connect creat ctime difftime div dup exec \
    execv execve execvp exit fclose fcntl fdopen feof ferror fflush ffs fgetc fgetpos fgets fileno flock fopen fork fprintf \
    fputc fputs fread free freopen fscanf fseek fseeko fsetpos fstat fsync ftell ftello ftruncate fwrite getc getchar getcwd \
    getenv getline getopt getpid gets getuid gmtime htonl htons index ioctl isalnum isalpha isatty isblank iscntrl isdigit \
    isgraph islower isprint ispunct isspace isupper isxdigit kill labs ldiv link listen llabs lldiv localtime longjmp lseek \
    lstat main malloc memalign memccpy memchr memcmp memcpy memmem memmove mempcpy memrchr memset mkdir mktime mlock mmap \
    mprotect munmap nanosleep ntohl ntohs open opendir pause pclose perror pipe poll popen posix_memalign pread printf putc \
    putchar putenv puts pwrite qsort raise rand random read readdir readlink realloc realpath recv recvfrom remove rename \
    rewind rindex rmdir scanf select send sendto setbuf setenv setjmp setvbuf shutdown sigaction signal sleep snprintf socket \
    sprintf srand srandom sscanf stat stpcpy strcasecmp strcat strchr strcmp strcoll strcpy strcspn strdup strerror strftime \
    strlen strncasecmp strncat strncmp strncpy strndup strnlen strpbrk strrchr strspn strstr strtod strtof strtok strtok_r \
    strtol strtold strtoll strtoul strtoull strxfrm symlink sync syscall system tempnam time tmpfile tmpnam tolower toupper \
    umask ungetc unlink unsetenv usleep utime va_end va_start valloc vfork vfprintf vprintf vscanf vsnprintf vsprintf wait \
    waitpid wcslen write";

/// Of its mathematics those for `double`; with an `f` behind they are those for `float`.
const MATHEMATICS: &str = "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim \
    floor fma fmax fmin fmod frexp gamma hypot ilogb isfinite isinf isnan j0 j1 jn ldexp lgamma llrint llround log log10 log1p \
    log2 logb lrint lround modf nan nearbyint nextafter pow remainder remquo rint round scalbln scalbn signbit sin sinh sqrt \
    tan tanh tgamma trunc y0 y1 yn";

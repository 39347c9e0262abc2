#!/usr/bin/env python3
"""Writes libc.txt: the prototypes of the C library's exported functions, from its headers (libc6-dev).

Usage: debuginfo/src/prototypes/generate.py >debuginfo/src/prototypes/libc.txt

Needs clang, which parses the headers, gcc, which knows the values of their constants, and readelf. A line is

    NAME RESULT PARAMETER...

RESULT is a kind, a PARAMETER is NAME:KIND, and a kind is one of

    v                       nothing
    i1 i2 i4 i8 u1 ... u8   an integer of so many bytes, signed or not
    f4 f8                   a floating point number
    p                       a pointer
    t                       a pointer to text up to a NUL, which is worth to be kept with each call
    c                       the same for functions that may be called very often: it is kept on request only
    d                       a pointer to data, whose length is the next parameter
    i4=SET                  one of the constants of SET, or several of them joined

and "SET NAME=VALUE ..." lines with a leading "=" give the constants. Functions with structures or long double among their
parameters are left out, and so is a result of these.
"""

import fnmatch
import json
import re
import subprocess
import sys
import tempfile

HEADERS = """
aio.h arpa/inet.h assert.h ctype.h dirent.h dlfcn.h err.h errno.h error.h fcntl.h fenv.h fnmatch.h ftw.h getopt.h glob.h grp.h
iconv.h ifaddrs.h inttypes.h langinfo.h libgen.h libintl.h link.h locale.h malloc.h math.h mntent.h monetary.h mqueue.h
net/if.h netdb.h netinet/in.h nl_types.h poll.h pthread.h pty.h pwd.h regex.h resolv.h sched.h search.h semaphore.h setjmp.h
shadow.h signal.h spawn.h stdio.h stdlib.h string.h strings.h sys/epoll.h sys/eventfd.h sys/file.h sys/inotify.h sys/ioctl.h
sys/ipc.h sys/mman.h sys/mount.h sys/msg.h sys/personality.h sys/prctl.h sys/ptrace.h sys/random.h sys/resource.h sys/select.h
sys/sem.h sys/sendfile.h sys/shm.h sys/signalfd.h sys/socket.h sys/stat.h sys/statfs.h sys/statvfs.h sys/sysinfo.h sys/syscall.h
sys/time.h sys/timerfd.h sys/times.h sys/types.h sys/uio.h sys/utsname.h sys/wait.h sys/xattr.h syslog.h termios.h threads.h
time.h ucontext.h unistd.h utime.h utmp.h wchar.h wctype.h wordexp.h
""".split()

LIBRARIES = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6"]

# Functions that ask the kernel or are called a few times in a run: their texts are kept with each call. Others look at texts,
# copy or print them, and are called too often for that.
SELDOM = re.compile(
    r"^(open|creat|f?re?open|fopen|fdopen|popen|remove|rename|link|symlink|unlink|readlink|mkdir|rmdir|mkfifo|mknod|mkstemp|mkdtemp"
    r"|mkostemp|tempnam|realpath|canonicalize_file_name|access|eaccess|euidaccess|faccess|l?stat|fstatat|statx|statfs|statvfs|[fl]?chown"
    r"|f?chmod|l?chmod|utime|lutimes|truncate|chdir|chroot|execl?[vpe]*|fexecve|posix_spawn|system|getenv|secure_getenv|setenv"
    r"|unsetenv|opendir|scandir|ftw|nftw|glob|wordexp|dlopen|dlmopen|dlsym|dlvsym|dladdr|setlocale|newlocale|bindtextdomain|textdomain"
    r"|iconv_open|getpwnam|getgrnam|getspnam|getaddrinfo|gethostbyname|getservbyname|getprotobyname|if_nametoindex|inet_pton|inet_addr"
    r"|mount|umount|swapon|swapoff|[fl]?getxattr|[fl]?setxattr|[fl]?listxattr|[fl]?removexattr|inotify_add_watch|shm_open|shm_unlink"
    r"|sem_open|sem_unlink|mq_open|mq_unlink|memfd_create|openlog|syslog|perror|sethostname|pivot_root|regcomp|pthread_setname_np)"
    r"(at|r|p|2|64|at64|at2|_r|_2|64_2|at_2)*$"
)

# Names of parameters in the manual pages, where those of the headers say less.
BETTER = {"file": "path", "filename": "path", "oflag": "flags", "nbytes": "count", "modes": "mode"}

SETS = {
    "open": ["O_RDONLY", "O_WRONLY", "O_RDWR", "O_CREAT", "O_EXCL", "O_NOCTTY", "O_TRUNC", "O_APPEND", "O_NONBLOCK", "O_DSYNC",
             "O_SYNC", "O_ASYNC", "O_DIRECT", "O_DIRECTORY", "O_NOFOLLOW", "O_NOATIME", "O_CLOEXEC", "O_PATH", "O_TMPFILE"],
    "access": ["F_OK", "R_OK", "W_OK", "X_OK"],
    "dirfd": ["AT_FDCWD"],
    "at": ["AT_SYMLINK_NOFOLLOW", "AT_REMOVEDIR", "AT_SYMLINK_FOLLOW", "AT_NO_AUTOMOUNT", "AT_EMPTY_PATH", "AT_EACCESS"],
    "prot": ["PROT_NONE", "PROT_READ", "PROT_WRITE", "PROT_EXEC"],
    "map": ["MAP_SHARED", "MAP_PRIVATE", "MAP_FIXED", "MAP_ANONYMOUS", "MAP_GROWSDOWN", "MAP_LOCKED", "MAP_NORESERVE",
            "MAP_POPULATE", "MAP_NONBLOCK", "MAP_STACK", "MAP_HUGETLB", "MAP_FIXED_NOREPLACE"],
    "whence": ["SEEK_SET", "SEEK_CUR", "SEEK_END", "SEEK_DATA", "SEEK_HOLE"],
    "fcntl": ["F_DUPFD", "F_GETFD", "F_SETFD", "F_GETFL", "F_SETFL", "F_GETLK", "F_SETLK", "F_SETLKW", "F_SETOWN", "F_GETOWN",
              "F_DUPFD_CLOEXEC", "F_SETPIPE_SZ", "F_GETPIPE_SZ", "F_ADD_SEALS", "F_GET_SEALS"],
    "domain": ["AF_UNSPEC", "AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET"],
    "socktype": ["SOCK_STREAM", "SOCK_DGRAM", "SOCK_RAW", "SOCK_SEQPACKET", "SOCK_NONBLOCK", "SOCK_CLOEXEC"],
    "msg": ["MSG_OOB", "MSG_PEEK", "MSG_DONTROUTE", "MSG_CTRUNC", "MSG_TRUNC", "MSG_DONTWAIT", "MSG_EOR", "MSG_WAITALL",
            "MSG_NOSIGNAL", "MSG_ERRQUEUE", "MSG_MORE", "MSG_CMSG_CLOEXEC"],
    "shut": ["SHUT_RD", "SHUT_WR", "SHUT_RDWR"],
    "level": ["SOL_SOCKET", "IPPROTO_TCP", "IPPROTO_UDP", "IPPROTO_IPV6"],
    "clock": ["CLOCK_REALTIME", "CLOCK_MONOTONIC", "CLOCK_PROCESS_CPUTIME_ID", "CLOCK_THREAD_CPUTIME_ID", "CLOCK_MONOTONIC_RAW",
              "CLOCK_REALTIME_COARSE", "CLOCK_MONOTONIC_COARSE", "CLOCK_BOOTTIME"],
    "signal": ["SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGSEGV",
               "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU",
               "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR", "SIGSYS"],
    "how": ["SIG_BLOCK", "SIG_UNBLOCK", "SIG_SETMASK"],
    "wait": ["WNOHANG", "WUNTRACED", "WCONTINUED", "WEXITED", "WNOWAIT"],
    "flock": ["LOCK_SH", "LOCK_EX", "LOCK_UN", "LOCK_NB"],
    "advice": ["MADV_NORMAL", "MADV_RANDOM", "MADV_SEQUENTIAL", "MADV_WILLNEED", "MADV_DONTNEED", "MADV_FREE", "MADV_DONTFORK",
               "MADV_HUGEPAGE", "MADV_NOHUGEPAGE", "MADV_DONTDUMP"],
    "dlopen": ["RTLD_LAZY", "RTLD_NOW", "RTLD_NOLOAD", "RTLD_DEEPBIND", "RTLD_GLOBAL", "RTLD_NODELETE"],
    "epoll": ["EPOLL_CTL_ADD", "EPOLL_CTL_DEL", "EPOLL_CTL_MOD"],
    "resource": ["RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_DATA", "RLIMIT_STACK", "RLIMIT_CORE", "RLIMIT_RSS", "RLIMIT_NPROC",
                 "RLIMIT_NOFILE", "RLIMIT_MEMLOCK", "RLIMIT_AS"],
    "locale": ["LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_COLLATE", "LC_MONETARY", "LC_MESSAGES", "LC_ALL"],
}

# Which parameter of which functions has constants of which set.
HAS = [
    ("open open64 __open_2 __open64_2", "flags", "open"), ("openat openat64 __openat_2 __openat64_2", "flags", "open"),
    ("pipe2 dup3", "flags", "open"), ("access euidaccess eaccess faccessat", "type", "access"),
    ("*at *at64 statx", "fd", "dirfd"), ("linkat renameat renameat2", "*fd", "dirfd"),
    ("faccessat fstatat fstatat64 fchmodat fchownat linkat unlinkat utimensat statx execveat", "flag*", "at"),
    ("mmap mmap64 mprotect pkey_mprotect", "prot", "prot"), ("mmap mmap64", "flags", "map"),
    ("lseek lseek64 fseek fseeko fseeko64", "whence", "whence"), ("fcntl fcntl64", "cmd", "fcntl"),
    ("socket socketpair", "domain", "domain"), ("socket socketpair", "type", "socktype"), ("accept4", "flags", "socktype"),
    ("send sendto sendmsg sendmmsg recv recvfrom recvmsg recvmmsg", "flags", "msg"), ("shutdown", "how", "shut"),
    ("setsockopt getsockopt", "level", "level"),
    ("clock_gettime clock_getres clock_settime clock_nanosleep timerfd_create timer_create", "clock_id", "clock"),
    ("kill killpg raise signal sigaction tgkill pthread_kill sigaddset sigdelset sigismember strsignal psignal sigqueue bsd_signal",
     "sig*", "signal"), ("pthread_kill", "signo", "signal"),
    ("sigprocmask pthread_sigmask", "how", "how"), ("waitpid wait3 wait4 waitid", "options", "wait"),
    ("flock", "operation", "flock"), ("madvise", "advice", "advice"), ("dlopen dlmopen", "mode", "dlopen"),
    ("epoll_ctl", "op", "epoll"), ("getrlimit getrlimit64 setrlimit setrlimit64 prlimit prlimit64", "resource", "resource"),
    ("setlocale", "category", "locale"),
]

# Data whose length is the next parameter.
DATA = {("write", "buf"), ("pwrite", "buf"), ("pwrite64", "buf"), ("send", "buf"), ("sendto", "buf")}

INTEGERS = {
    "char": "i1", "signed char": "i1", "unsigned char": "u1", "short": "i2", "unsigned short": "u2", "int": "i4",
    "unsigned int": "u4", "long": "i8", "unsigned long": "u8", "long long": "i8", "unsigned long long": "u8", "_Bool": "u1",
    "bool": "u1", "float": "f4", "double": "f8", "void": "v",
}


def run(*command, text=None):
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, check=True, text=True).stdout


def exported():
    names = set()
    for library in LIBRARIES:
        for line in run("readelf", "-W", "--dyn-syms", library).splitlines():
            fields = line.split()
            if len(fields) > 7 and fields[3] in ("FUNC", "IFUNC") and fields[6] != "UND":
                names.add(fields[7].split("@")[0])
    return names


def source():
    return "#define _GNU_SOURCE\n" + "".join(f"#include <{header}>\n" for header in HEADERS)


def parsed(kind, *options):
    """What the headers declare of a kind, as clang's nodes."""
    with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
        file.write(source())
        file.flush()
        tree = json.loads(run("clang", "-w", *options, "-fsyntax-only", "-Xclang", "-ast-dump=json", file.name))
    return [node for node in tree["inner"] if node["kind"] == kind]


def kind(qualified):
    """The kind of a type as clang writes it; None for what has no place in one register."""
    written = qualified.get("desugaredQualType", qualified["qualType"])
    plain = re.sub(r"\b(const|volatile|restrict|__restrict|_Nonnull|_Nullable)\b", "", written).strip()
    plain = re.sub(r"\s+", " ", plain)
    if "*" in plain or "[" in plain or plain.endswith("va_list") or "(" in plain:
        return "p"
    if plain.startswith("enum ") or plain in ("idtype_t",):
        return "i4"
    return INTEGERS.get(plain)


def is_text(qualified):
    written = qualified.get("desugaredQualType", qualified["qualType"])
    return re.fullmatch(r"const char \*\s*(restrict|__restrict)?", written.strip()) is not None


def parameter(function, node, index):
    name = node.get("name", "").lstrip("_") or f"arg{index}"
    name = BETTER.get(name, name)
    what = kind(node["type"])
    if what is None:
        return None
    if is_text(node["type"]):
        what = "t" if SELDOM.match(function) else "c"
    if (function, name) in DATA:
        what = "d"
    for functions, parameters, values in HAS:
        is_one = any(fnmatch.fnmatch(function, pattern) for pattern in functions.split())
        if is_one and fnmatch.fnmatch(name, parameters) and what in ("i4", "u4"):
            what = f"i4={values}"
            break
    return f"{name}:{what}"


def line(node):
    name = node["name"]
    result = node["type"]["qualType"].split("(")[0].strip()
    # The result's type is written in the function's: a typedef is looked up among the parameters' spelling of it.
    result = kind({"qualType": TYPEDEFS.get(result, result)})
    parameters = [inner for inner in node.get("inner", []) if inner["kind"] == "ParmVarDecl"]
    shown = [parameter(name, inner, index) for index, inner in enumerate(parameters)]
    if result is None or None in shown:
        return None
    dots = ["..."] if node.get("variadic") else []
    return " ".join([name, result, *shown, *dots])


def named(node):
    """How many parameters have names: clang also lists its own declarations of what it knows, which have none."""
    return sum("name" in inner for inner in node.get("inner", []) if inner["kind"] == "ParmVarDecl")


def functions():
    """Declared functions, those with fewer named parameters first."""
    # Programs that are built with _FORTIFY_SOURCE call these instead of the usual ones.
    fortified = [node for node in parsed("FunctionDecl", "-O2", "-D_FORTIFY_SOURCE=2") if node["name"].endswith("_chk")]
    return sorted(parsed("FunctionDecl") + fortified, key=named)


def typedefs():
    return {node["name"]: node["type"].get("desugaredQualType", node["type"]["qualType"]) for node in parsed("TypedefDecl")}


def constants():
    names = sorted({name for values in SETS.values() for name in values})
    program = source() + "#include <netinet/tcp.h>\nint main(void) {\n"
    program += "".join(f'printf("{name} %d\\n", (int)({name}));\n' for name in names) + "}\n"
    with tempfile.TemporaryDirectory() as folder:
        run("gcc", "-w", "-x", "c", "-", "-o", f"{folder}/constants", text=program)
        return dict(row.split() for row in run(f"{folder}/constants").splitlines())


def main():
    values = constants()
    for name, members in sorted(SETS.items()):
        numbers = {member: int(values[member]) for member in members}
        if name == "socktype":
            # Types are numbers, and flags are joined to them.
            flags = ["SOCK_NONBLOCK", "SOCK_CLOEXEC"]
            kinds = [member for member in members if member not in flags]
            for joined in (flags[:1], flags[1:], flags):
                numbers |= {"|".join([kind, *joined]): numbers[kind] | sum(numbers[flag] for flag in joined) for kind in kinds}
        print(f"={name} " + " ".join(f"{member}={number}" for member, number in numbers.items()))
    known = exported()
    lines = {}
    for node in functions():
        if node["name"] in known:
            shown = line(node)
            if shown:
                lines[node["name"]] = shown
    for name in sorted(lines):
        print(lines[name])
    print(f"{len(lines)} functions", file=sys.stderr)


TYPEDEFS = typedefs()

if __name__ == "__main__":
    main()

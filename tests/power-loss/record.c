/*
 * Recorder of the power-loss model: a library for LD_PRELOAD that appends to a trace every change of
 * the files below one folder, and every sync of them that has completed. tests/src/power_loss makes
 * of a trace what a disk may hold after the power failed.
 *
 * Variables of the environment:
 *   POWER_LOSS_FOLDER       the folder, without symbolic links
 *   POWER_LOSS_TRACE        the trace, which is appended to
 *   POWER_LOSS_IGNORE_SYNC  syncs of files whose name contains this leave no record (optional)
 *   POWER_LOSS_FAIL         a file of 4096 bytes by which calls are made to fail (optional)
 *
 * A change and its record are made under one lock, so the order of records is the order of changes.
 * A sync does not hold the lock. Its record names the length of the trace when it began, because it
 * covers no change that came later. Changes by mmap are not seen: SQLite makes none, but to its -shm.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind {
    OPEN_FILE = 1,
    OPEN_FOLDER,
    CREATE,
    WRITE,
    TRUNCATE,
    SYNC,
    SYNC_FAILED,
    UNLINK,
    RENAME,
    MAKE_FOLDER,
    REMOVE_FOLDER,
};

/* What a record begins with; the name and the data follow. All numbers are little-endian. */
struct header {
    uint32_t kind;
    uint32_t name_bytes;
    uint64_t file;   /* number of the inode */
    uint64_t offset; /* of a write; the new length of a TRUNCATE; what a SYNC covers of the trace */
    uint64_t data_bytes;
};

/* Calls that fail, as the test asks for them: "write NAME COUNT" or "sync NAME COUNT". */
struct failures {
    volatile uint32_t request; /* grows with each request */
    volatile uint32_t failed;  /* number of calls that have failed so far */
    char text[256];
};

#define DESCRIPTORS 4096
#define NAME_BYTES 128

/* Open files below the folder. A descriptor that is none of them has no inode here. */
static struct {
    uint64_t file;
    char name[NAME_BYTES];
} tracked[DESCRIPTORS];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *folder;
static const char *ignored;
static struct failures *failures;
static int trace = -1;

static struct {
    uint32_t request;
    char operation[8];
    char name[NAME_BYTES];
    int left;
} failing;

static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_pwritev)(int, const struct iovec *, int, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fallocate)(int, int, off_t, off_t);
static int (*real_posix_fallocate)(int, off_t, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_unlinkat)(int, const char *, int);
static int (*real_renameat2)(int, const char *, int, const char *, unsigned);
static int (*real_mkdirat)(int, const char *, mode_t);

static void die(const char *what)
{
    dprintf(STDERR_FILENO, "power-loss recorder: %s: %s\n", what, strerror(errno));
    abort();
}

static void find(void *place, const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        die(name);
    memcpy(place, &found, sizeof found);
}

static void begin(void)
{
    find(&real_open, "open");
    find(&real_openat, "openat");
    find(&real_close, "close");
    find(&real_write, "write");
    find(&real_writev, "writev");
    find(&real_pwrite, "pwrite");
    find(&real_pwritev, "pwritev");
    find(&real_ftruncate, "ftruncate");
    find(&real_fallocate, "fallocate");
    find(&real_posix_fallocate, "posix_fallocate");
    find(&real_fsync, "fsync");
    find(&real_fdatasync, "fdatasync");
    find(&real_unlinkat, "unlinkat");
    find(&real_renameat2, "renameat2");
    find(&real_mkdirat, "mkdirat");

    folder = getenv("POWER_LOSS_FOLDER");
    ignored = getenv("POWER_LOSS_IGNORE_SYNC");
    const char *path = getenv("POWER_LOSS_TRACE");
    if (!folder || !path)
        return;
    trace = real_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (trace < 0)
        die(path);
    path = getenv("POWER_LOSS_FAIL");
    if (!path)
        return;
    int fd = real_open(path, O_RDWR | O_CLOEXEC);
    void *page = MAP_FAILED;
    if (fd >= 0)
        page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED)
        die(path);
    failures = page;
    real_close(fd);
}

static void prepare(void)
{
    pthread_once(&once, begin);
}

static void acquire(void)
{
    pthread_mutex_lock(&lock);
}

static void release(void)
{
    int kept = errno;
    pthread_mutex_unlock(&lock);
    errno = kept;
}

/* Appends a record. The lock is held. */
static void append(struct header header, const char *name, const void *data)
{
    int kept = errno;
    struct iovec parts[3] = {
        {&header, sizeof header},
        {(void *)name, header.name_bytes},
        {(void *)data, header.data_bytes},
    };
    size_t left = sizeof header + header.name_bytes + header.data_bytes;
    while (left > 0) {
        ssize_t written = real_writev(trace, parts, 3);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            die("cannot write the trace");
        left -= (size_t)written;
        for (int part = 0; part < 3 && written > 0; part++) {
            size_t taken = parts[part].iov_len;
            if ((size_t)written < taken)
                taken = (size_t)written;
            parts[part].iov_base = (char *)parts[part].iov_base + taken;
            parts[part].iov_len -= taken;
            written -= (ssize_t)taken;
        }
    }
    errno = kept;
}

static void append_name(enum kind kind, uint64_t file, const char *name)
{
    struct header header = {kind, (uint32_t)strlen(name), file, 0, 0};
    append(header, name, NULL);
}

static void append_number(enum kind kind, uint64_t file, uint64_t number)
{
    struct header header = {kind, 0, file, number, 0};
    append(header, NULL, NULL);
}

static void append_write(int fd, const void *data, ssize_t bytes, off_t offset)
{
    struct header header = {WRITE, 0, tracked[fd].file, (uint64_t)offset, (uint64_t)bytes};
    append(header, NULL, data);
}

static int is_tracked(int fd)
{
    return fd >= 0 && fd < DESCRIPTORS && __atomic_load_n(&tracked[fd].file, __ATOMIC_ACQUIRE);
}

/* The part of an absolute path behind the folder; "" for the folder itself, NULL for any other. */
static const char *below(const char *path)
{
    size_t length = strlen(folder);
    if (trace < 0 || strncmp(path, folder, length) != 0)
        return NULL;
    if (path[length] == '/')
        return path + length + 1;
    return path[length] ? NULL : path + length;
}

static int path_of(int fd, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0)
        return -1;
    path[length] = 0;
    return 0;
}

/* The name below the folder of what a call names, or NULL. The room has 2 * PATH_MAX bytes. */
static const char *named(int at, const char *path, char *room)
{
    if (trace < 0)
        return NULL;
    if (path[0] == '/')
        return below(path);
    if (at == AT_FDCWD ? !getcwd(room, PATH_MAX) : path_of(at, room) < 0)
        return NULL;
    strcat(room, "/");
    strncat(room, path, PATH_MAX - 2);
    return below(room);
}

/* Whether a call has to fail. The lock is held. */
static int must_fail(int fd, const char *operation)
{
    if (!failures)
        return 0;
    if (failing.request != failures->request) {
        failing.request = failures->request;
        failing.left = 0;
        if (sscanf(failures->text, "%7s %127s %d", failing.operation, failing.name, &failing.left) != 3)
            die("a request to fail that cannot be read");
    }
    if (failing.left <= 0 || strcmp(failing.operation, operation) != 0 || strcmp(tracked[fd].name, failing.name) != 0)
        return 0;
    failing.left--;
    failures->failed++;
    errno = EIO;
    return 1;
}

/* Takes note of what was opened. The lock is held. */
static void opened(int fd, int flags, int is_new, off_t former_bytes)
{
    char path[PATH_MAX];
    struct stat stat;
    int kept = errno;
    if (fd < 0 || trace < 0 || flags & O_PATH || path_of(fd, path) < 0)
        return;
    const char *name = below(path);
    if (!name || fstat(fd, &stat) < 0 || !(S_ISREG(stat.st_mode) || S_ISDIR(stat.st_mode)))
        return;
    if (fd >= DESCRIPTORS || strlen(name) >= NAME_BYTES)
        die("more open files, or a longer name, than there is room for");
    strcpy(tracked[fd].name, name);
    __atomic_store_n(&tracked[fd].file, stat.st_ino, __ATOMIC_RELEASE);
    append_name(S_ISDIR(stat.st_mode) ? OPEN_FOLDER : is_new ? CREATE : OPEN_FILE, stat.st_ino, name);
    if (flags & O_TRUNC && former_bytes > 0)
        append_number(TRUNCATE, stat.st_ino, 0);
    errno = kept;
}

static int open_recorded(int at, const char *path, int flags, mode_t mode)
{
    prepare();
    struct stat stat = {0};
    acquire();
    int kept = errno;
    int is_new = flags & O_CREAT && fstatat(at, path, &stat, 0) < 0;
    if (flags & O_TRUNC && !(flags & O_CREAT))
        fstatat(at, path, &stat, 0);
    errno = kept;
    int fd = real_openat(at, path, flags, mode);
    opened(fd, flags, is_new, stat.st_size);
    release();
    return fd;
}

/* The mode is an argument of calls that may create a file, and of no others. */
#define TAKE_MODE(mode, flags)                       \
    mode_t mode = 0;                                 \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {         \
        va_list list;                                \
        va_start(list, flags);                       \
        mode = va_arg(list, mode_t);                 \
        va_end(list);                                \
    }

int open(const char *path, int flags, ...)
{
    TAKE_MODE(mode, flags)
    return open_recorded(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    TAKE_MODE(mode, flags)
    return open_recorded(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

int openat(int at, const char *path, int flags, ...)
{
    TAKE_MODE(mode, flags)
    return open_recorded(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...)
{
    TAKE_MODE(mode, flags)
    return open_recorded(at, path, flags | O_LARGEFILE, mode);
}

int creat(const char *path, mode_t mode)
{
    return open_recorded(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int creat64(const char *path, mode_t mode)
{
    return creat(path, mode);
}

int close(int fd)
{
    prepare();
    if (!is_tracked(fd))
        return real_close(fd);
    acquire();
    __atomic_store_n(&tracked[fd].file, 0, __ATOMIC_RELEASE);
    int result = real_close(fd);
    release();
    return result;
}

ssize_t write(int fd, const void *data, size_t bytes)
{
    prepare();
    if (!is_tracked(fd))
        return real_write(fd, data, bytes);
    acquire();
    ssize_t written = must_fail(fd, "write") ? -1 : real_write(fd, data, bytes);
    if (written > 0)
        append_write(fd, data, written, lseek(fd, 0, SEEK_CUR) - written);
    release();
    return written;
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    prepare();
    if (!is_tracked(fd))
        return real_pwrite(fd, data, bytes, offset);
    acquire();
    ssize_t written = must_fail(fd, "write") ? -1 : real_pwrite(fd, data, bytes, offset);
    if (written > 0)
        append_write(fd, data, written, offset);
    release();
    return written;
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset)
{
    return pwrite(fd, data, bytes, offset);
}

/* Appends what a call wrote from several places. The lock is held. */
static void append_parts(int fd, const struct iovec *parts, ssize_t written, off_t offset)
{
    for (int part = 0; written > 0; part++) {
        ssize_t bytes = (ssize_t)parts[part].iov_len < written ? (ssize_t)parts[part].iov_len : written;
        append_write(fd, parts[part].iov_base, bytes, offset);
        offset += bytes;
        written -= bytes;
    }
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    prepare();
    if (!is_tracked(fd))
        return real_writev(fd, parts, count);
    acquire();
    ssize_t written = must_fail(fd, "write") ? -1 : real_writev(fd, parts, count);
    if (written > 0)
        append_parts(fd, parts, written, lseek(fd, 0, SEEK_CUR) - written);
    release();
    return written;
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    prepare();
    if (!is_tracked(fd))
        return real_pwritev(fd, parts, count, offset);
    acquire();
    ssize_t written = must_fail(fd, "write") ? -1 : real_pwritev(fd, parts, count, offset);
    if (written > 0)
        append_parts(fd, parts, written, offset);
    release();
    return written;
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    return pwritev(fd, parts, count, offset);
}

int ftruncate(int fd, off_t length)
{
    prepare();
    if (!is_tracked(fd))
        return real_ftruncate(fd, length);
    acquire();
    int result = must_fail(fd, "write") ? -1 : real_ftruncate(fd, length);
    if (result == 0)
        append_number(TRUNCATE, tracked[fd].file, (uint64_t)length);
    release();
    return result;
}

int ftruncate64(int fd, off64_t length)
{
    return ftruncate(fd, length);
}

/* Takes note of a file that may have grown. The lock is held. */
static void grown(int fd)
{
    struct stat stat;
    if (fstat(fd, &stat) == 0)
        append_number(TRUNCATE, tracked[fd].file, (uint64_t)stat.st_size);
}

int fallocate(int fd, int mode, off_t offset, off_t bytes)
{
    prepare();
    if (!is_tracked(fd))
        return real_fallocate(fd, mode, offset, bytes);
    acquire();
    if (mode & ~FALLOC_FL_KEEP_SIZE)
        die("a mode of fallocate that the model does not know");
    int result = must_fail(fd, "write") ? -1 : real_fallocate(fd, mode, offset, bytes);
    if (result == 0)
        grown(fd);
    release();
    return result;
}

int fallocate64(int fd, int mode, off64_t offset, off64_t bytes)
{
    return fallocate(fd, mode, offset, bytes);
}

int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    prepare();
    if (!is_tracked(fd))
        return real_posix_fallocate(fd, offset, bytes);
    acquire();
    int result = must_fail(fd, "write") ? EIO : real_posix_fallocate(fd, offset, bytes);
    if (result == 0)
        grown(fd);
    release();
    return result;
}

int posix_fallocate64(int fd, off64_t offset, off64_t bytes)
{
    return posix_fallocate(fd, offset, bytes);
}

static int sync_recorded(int fd, int (*real)(int))
{
    prepare();
    if (!is_tracked(fd))
        return real(fd);
    acquire();
    uint64_t file = tracked[fd].file;
    uint64_t covers = (uint64_t)lseek(trace, 0, SEEK_END);
    int is_ignored = ignored && strstr(tracked[fd].name, ignored);
    int fails = must_fail(fd, "sync");
    release();
    int result = fails ? -1 : real(fd);
    acquire();
    if (!is_ignored)
        append_number(result == 0 ? SYNC : SYNC_FAILED, file, covers);
    release();
    return result;
}

int fsync(int fd)
{
    prepare();
    return sync_recorded(fd, real_fsync);
}

int fdatasync(int fd)
{
    prepare();
    return sync_recorded(fd, real_fdatasync);
}

int unlinkat(int at, const char *path, int flags)
{
    prepare();
    char room[2 * PATH_MAX];
    const char *name = named(at, path, room);
    if (!name)
        return real_unlinkat(at, path, flags);
    acquire();
    int result = real_unlinkat(at, path, flags);
    if (result == 0)
        append_name(flags & AT_REMOVEDIR ? REMOVE_FOLDER : UNLINK, 0, name);
    release();
    return result;
}

int unlink(const char *path)
{
    return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path)
{
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    prepare();
    char from_room[2 * PATH_MAX];
    char to_room[2 * PATH_MAX];
    const char *former = named(from_at, from, from_room);
    const char *name = named(to_at, to, to_room);
    if (!former && !name)
        return real_renameat2(from_at, from, to_at, to, flags);
    if (!former || !name || flags & ~RENAME_NOREPLACE)
        die("a rename that the model does not know");
    acquire();
    int result = real_renameat2(from_at, from, to_at, to, flags);
    if (result == 0) {
        struct header header = {RENAME, (uint32_t)strlen(former), 0, 0, strlen(name)};
        append(header, former, name);
    }
    release();
    return result;
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
    return renameat2(from_at, from, to_at, to, 0);
}

int rename(const char *from, const char *to)
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int mkdirat(int at, const char *path, mode_t mode)
{
    prepare();
    char room[2 * PATH_MAX];
    const char *name = named(at, path, room);
    acquire();
    int result = real_mkdirat(at, path, mode);
    if (result == 0 && name)
        append_name(MAKE_FOLDER, 0, name);
    release();
    return result;
}

int mkdir(const char *path, mode_t mode)
{
    return mkdirat(AT_FDCWD, path, mode);
}

/* User-Mode Linux 6.1 keeps the vector registers of its processes in a buffer
 * that is too small for processors with AMX, and newer kernels take them only
 * whole: what it sets is laid over what there is. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PEEK_FIRST = 1, PEEK_LAST = 3, GET_REGISTERS = 0x4204, SET_REGISTERS = 0x4205, XSTATE = 0x202 };

long ptrace(int request, ...)
{
    va_list rest;
    va_start(rest, request);
    long process = va_arg(rest, int);
    void *address = va_arg(rest, void *);
    void *data = va_arg(rest, void *);
    va_end(rest);
    if (request == SET_REGISTERS && (long)address == XSTATE) {
        static char registers[1 << 16];
        struct iovec whole = {registers, sizeof registers};
        const struct iovec *given = data;
        if (syscall(SYS_ptrace, GET_REGISTERS, process, address, &whole) == 0
            && given->iov_len < whole.iov_len) {
            memcpy(registers, given->iov_base, given->iov_len);
            return syscall(SYS_ptrace, request, process, address, &whole);
        }
    }
    if (request >= PEEK_FIRST && request <= PEEK_LAST) {
        /* The C library's returns the word; the system call stores it. */
        long word;
        long failed = syscall(SYS_ptrace, request, process, address, &word);
        return failed == 0 ? word : failed;
    }
    return syscall(SYS_ptrace, request, process, address, data);
}

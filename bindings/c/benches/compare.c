/* Reads a LUKS1 volume whole with cryptmark and with libluksde, in turns, in pieces of 1 MiB:
 * compare VOLUME ROUNDS < passphrase
 *
 * gcc -O2 compare.c $(pkg-config --cflags --libs cryptmark) -lluksde
 *
 * It needs libluksde-dev and libbfio-dev. libluksde 20200205 ends with "stack smashing detected" on
 * volume keys of 512 bits, so give `cryptsetup luksFormat` a --key-size of 256. */

#define _POSIX_C_SOURCE 200809L

#include <cryptmark.h>
#include <libluksde.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned char piece[1 << 20], other[1 << 20];

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static int compare(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;

    return difference < 0 ? -1 : difference > 0;
}

int main(int argc, char **argv)
{
    char passphrase[1024];
    cryptmark_options *options = cryptmark_options_new();
    cryptmark_volume *ours = NULL;
    libluksde_volume_t *theirs = NULL;
    double times[2][101], ratios[101];
    uint64_t offset, size;
    size_t done, length;
    int round, rounds;

    if (argc != 3 || (rounds = atoi(argv[2])) < 1 || rounds > 101
        || !fgets(passphrase, sizeof passphrase, stdin))
        return 2;
    length = strcspn(passphrase, "\n");
    if (cryptmark_options_secret(options, CRYPTMARK_PASSPHRASE, (uint8_t *)passphrase, length, NULL)
        || cryptmark_open(argv[1], options, &ours, NULL))
        return 3;
    if (libluksde_volume_initialize(&theirs, NULL) != 1
        || libluksde_volume_set_utf8_password(theirs, (uint8_t *)passphrase, length, NULL) != 1
        || libluksde_volume_open(theirs, argv[1], LIBLUKSDE_OPEN_READ, NULL) != 1)
        return 4;
    size = cryptmark_size(ours);
    for (round = 0; round < rounds; round++) {
        double begun = now();

        for (offset = 0; offset < size; offset += done)
            if (cryptmark_read(ours, offset, piece, sizeof piece, &done, NULL))
                return 5;
        times[0][round] = now() - begun;
        begun = now();
        for (offset = 0; offset < size; offset += done) {
            ssize_t read = libluksde_volume_read_buffer_at_offset(theirs, other, sizeof other,
                                                                  (off64_t)offset, NULL);
            if (read <= 0)
                return 6;
            done = (size_t)read;
        }
        times[1][round] = now() - begun;
        ratios[round] = times[1][round] / times[0][round];
        /* The last piece of both. */
        if (memcmp(piece, other, sizeof piece))
            return 7;
    }
    qsort(ratios, rounds, sizeof *ratios, compare);
    for (round = 0; round < 2; round++) {
        qsort(times[round], rounds, sizeof **times, compare);
        printf("%s %.1f MB/s (median of %d)\n", round ? "libluksde" : "cryptmark",
               size / times[round][rounds / 2] / 1e6, rounds);
    }
    printf("cryptmark is %.1f times as fast (%.1f to %.1f)\n", ratios[rounds / 2], ratios[0],
           ratios[rounds - 1]);
    libluksde_volume_free(&theirs, NULL);
    cryptmark_close(ours);
    cryptmark_options_free(options);
    return 0;
}

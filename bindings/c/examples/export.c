/* Writes the plaintext of a volume to a file: export VOLUME OUTPUT < passphrase */

#include <cryptmark.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(cryptmark_error *error)
{
    int code = cryptmark_error_code(error);
    fprintf(stderr, "error: %s\n  %s\n", cryptmark_error_message(error),
            cryptmark_error_remedy(error));
    cryptmark_error_free(error);
    return code;
}

int main(int argc, char **argv)
{
    char passphrase[1024];
    cryptmark_error *error = NULL;
    cryptmark_volume *volume = NULL;
    cryptmark_options *options = cryptmark_options_new();
    static unsigned char piece[1 << 20];
    uint64_t offset = 0;
    size_t done = 0;
    FILE *output;
    int code;

    if (argc != 3 || !fgets(passphrase, sizeof passphrase, stdin)) {
        fprintf(stderr, "usage: export VOLUME OUTPUT < passphrase\n");
        cryptmark_options_free(options);
        return 2;
    }
    passphrase[strcspn(passphrase, "\n")] = '\0';
    code = cryptmark_options_secret(options, CRYPTMARK_PASSPHRASE,
                                    (const uint8_t *)passphrase, strlen(passphrase), &error);
    memset(passphrase, 0, sizeof passphrase);
    if (code == CRYPTMARK_OK)
        code = cryptmark_open(argv[1], options, &volume, &error);
    cryptmark_options_free(options);
    if (code != CRYPTMARK_OK)
        return failed(error);

    output = fopen(argv[2], "wbx");
    if (!output) {
        perror(argv[2]);
        cryptmark_close(volume);
        return 1;
    }
    do {
        code = cryptmark_read(volume, offset, piece, sizeof piece, &done, &error);
        offset += done;
    } while (code == CRYPTMARK_OK && fwrite(piece, 1, done, output) == done && done > 0);
    printf("%llu bytes of %s\n", (unsigned long long)offset, cryptmark_info(volume));
    cryptmark_close(volume);
    if (code != CRYPTMARK_OK)
        return failed(error);
    if (done > 0 || fclose(output)) {
        perror(argv[2]);
        return 1;
    }
    return 0;
}

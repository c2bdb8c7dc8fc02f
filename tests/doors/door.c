/* The door of C: answers questions about volumes, as doors/asked.rs writes them. */

#define _POSIX_C_SOURCE 200809L
#include <cryptmark.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENDS = 1 << 20 };

/* The bytes of hexadecimal digits, in their place, with a zero behind them. */
static size_t bytes_of(char *text)
{
    size_t length = 0;
    unsigned byte;
    for (; sscanf(text + 2 * length, "%2x", &byte) == 1; length++)
        text[length] = (char)byte;
    text[length] = '\0';
    return length;
}

static void print_hex(const char *text)
{
    putchar(' ');
    for (; *text; text++)
        printf("%02x", (unsigned char)*text);
}

static void refused(cryptmark_code code, cryptmark_error *error)
{
    const char *question = cryptmark_error_question(error);
    if (code != cryptmark_error_code(error))
        abort();
    printf("refused %d %s", code, question ? question : "-");
    print_hex(cryptmark_error_message(error));
    cryptmark_error_free(error);
}

/* The first and the last bytes of the volume go to the file `output`, and `data` to its start. */
static cryptmark_code used(cryptmark_volume *volume, const char *output, const char *data,
                           size_t length, cryptmark_error **error)
{
    static unsigned char piece[ENDS];
    uint64_t size = cryptmark_size(volume);
    uint64_t places[2] = {0, size > ENDS ? size - ENDS : size};
    cryptmark_code code = CRYPTMARK_OK;
    FILE *file;
    int i;
    if (data) {
        code = cryptmark_write(volume, 0, (const uint8_t *)data, length, error);
        return code == CRYPTMARK_OK ? cryptmark_flush(volume, error) : code;
    }
    if (!output)
        return code;
    file = fopen(output, "wb");
    if (!file)
        abort();
    for (i = 0; i < 2 && code == CRYPTMARK_OK; i++) {
        size_t done = 0;
        code = cryptmark_read(volume, places[i], piece, ENDS, &done, error);
        if (fwrite(piece, 1, done, file) != done)
            abort();
    }
    fclose(file);
    return code;
}

int main(void)
{
    char *line = NULL, *path = NULL, *output = NULL, *data = NULL;
    size_t room = 0, length = 0;
    cryptmark_options *options = cryptmark_options_new();
    cryptmark_code code = CRYPTMARK_OK;
    cryptmark_error *error = NULL;

    while (getline(&line, &room, stdin) > 0) {
        char *command = strtok(line, " \n");
        char *name = strtok(NULL, " \n");
        char *value = strtok(NULL, " \n");
        if (!strcmp(command, "path")) {
            bytes_of(name);
            path = strdup(name);
        } else if (!strcmp(command, "output")) {
            bytes_of(name);
            output = strdup(name);
        } else if (!strcmp(command, "data")) {
            length = bytes_of(name);
            data = malloc(length + 1);
            memcpy(data, name, length + 1);
        } else if (!strcmp(command, "option")) {
            bytes_of(value);
            if (code == CRYPTMARK_OK)
                code = cryptmark_options_set(options, name, value, &error);
        } else if (!strcmp(command, "secret")) {
            char none[] = "";
            char *secret = value ? value : none;
            size_t bytes = bytes_of(secret);
            if (code == CRYPTMARK_OK)
                code = cryptmark_options_secret(options, atoi(name), (uint8_t *)secret, bytes,
                                                &error);
        } else {
            cryptmark_volume *volume = NULL;
            size_t bytes = name ? bytes_of(name) : 0;
            if (code != CRYPTMARK_OK)
                ;
            else if (!strcmp(command, "create"))
                code = cryptmark_create(path, options, name ? strtoull(name, NULL, 10) : 0, NULL,
                                        &error);
            else if (!strcmp(command, "add"))
                code = cryptmark_key_add(path, options, (uint8_t *)name, bytes, NULL, &error);
            else if (!strcmp(command, "reencrypt"))
                code = cryptmark_reencrypt(path, options, NULL, &error);
            else if (!strcmp(command, "encrypt"))
                code = cryptmark_encrypt(path, options, NULL, &error);
            else if (!strcmp(command, "decrypt"))
                code = cryptmark_decrypt(path, options, NULL, &error);
            else if (!strcmp(command, "convert"))
                code = cryptmark_convert(path, options, &error);
            else if (!strcmp(command, "resize"))
                code = cryptmark_resize(path, options, strtoull(name, NULL, 10), NULL, &error);
            else if (!strcmp(command, "change"))
                code = cryptmark_key_change(path, options, (uint8_t *)name, bytes, NULL, &error);
            else if (!strcmp(command, "repair"))
                code = cryptmark_header_repair(path, options, NULL, &error);
            else if (!strcmp(command, "restore"))
                code = cryptmark_header_restore(path, options, name, NULL, &error);
            else
                code = cryptmark_open(path, options, &volume, &error);
            if (code == CRYPTMARK_OK && volume)
                code = used(volume, output, data, length, &error);
            if (code != CRYPTMARK_OK) {
                refused(code, error);
            } else if (!volume) {
                printf("done");
            } else {
                printf("opened %llu", (unsigned long long)cryptmark_size(volume));
                print_hex(cryptmark_info(volume));
            }
            cryptmark_close(volume);
            puts("");
            fflush(stdout);
            cryptmark_options_free(options);
            free(path);
            free(output);
            free(data);
            path = output = data = NULL;
            options = cryptmark_options_new();
            code = CRYPTMARK_OK;
            error = NULL;
        }
    }
    cryptmark_options_free(options);
    free(line);
    return 0;
}

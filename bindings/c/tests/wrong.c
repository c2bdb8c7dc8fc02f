/* Uses the library wrongly, and expects codes: wrong VOLUME SOCKET < passphrase */

#define _DEFAULT_SOURCE

#include <cryptmark.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(code, call) expect(__LINE__, code, call, &error)
#define TRUE(what)                                                                                 \
    do {                                                                                           \
        if (!(what)) {                                                                             \
            printf("line %d: " #what "\n", __LINE__);                                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void expect(int line, int expected, int code, cryptmark_error **error)
{
    int told = cryptmark_error_code(*error);

    if (code != expected || told != expected || !*cryptmark_error_message(*error)) {
        printf("line %d: %d and %d, not %d: %s\n", line, code, told, expected,
               cryptmark_error_message(*error));
        exit(1);
    }
    if (expected != CRYPTMARK_OK)
        TRUE(*cryptmark_error_remedy(*error));
    cryptmark_error_free(*error);
    *error = NULL;
}

static cryptmark_volume *shared;

static void *reads_and_writes(void *nth)
{
    uint64_t at = (uint64_t)(size_t)nth * 10000 + 3;
    unsigned char bytes[700];
    size_t done;
    int round;

    for (round = 0; round < 20; round++) {
        if (cryptmark_read(shared, at, bytes, sizeof bytes, &done, NULL) || done != sizeof bytes)
            return "read";
        if (cryptmark_write(shared, at, bytes, sizeof bytes, NULL))
            return "write";
    }
    return NULL;
}

/* Losses that were asked for, and the times that progress was told. */
struct told {
    char losses[200];
    int accepts, stops;
    unsigned tells;
};

static int asks(void *user, const char *loss, const char *found)
{
    struct told *told = user;

    TRUE(*found && strlen(told->losses) + strlen(loss) + 2 < sizeof told->losses);
    strcat(strcat(told->losses, loss), " ");
    return told->accepts;
}

static int tells(void *user, uint64_t done, uint64_t total)
{
    struct told *told = user;

    TRUE(done <= total);
    told->tells++;
    return told->stops;
}

/* Makes and changes volumes. */
static void operates(const char *scratch, int under_valgrind)
{
    const uint8_t *one = (const uint8_t *)"one", *two = (const uint8_t *)"two";
    cryptmark_options *options = cryptmark_options_new(), *hidden;
    cryptmark_error *error = NULL;
    cryptmark_volume *volume = NULL;
    struct told told = {"", 0, 0, 0};
    cryptmark_calls calls = {&told, asks, tells};
    const uint64_t size = 40 << 20;
    char word[8], saved[4200];
    FILE *file;

    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_create(NULL, options, size, &calls, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_create(scratch, NULL, size, &calls, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_create(scratch, options, 0, &calls, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_create(scratch, options, size, &calls, &error));
    TRUE(access(scratch, F_OK) != 0);
    EXPECT(CRYPTMARK_OK, cryptmark_options_secret(options, CRYPTMARK_PASSPHRASE, one, 3, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "pbkdf", "pbkdf2", &error));
    EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "iter_time", "1", &error));
    EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "label", "mine", &error));
    EXPECT(CRYPTMARK_OK, cryptmark_create(scratch, options, size, NULL, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_open(scratch, options, &volume, &error));
    TRUE(cryptmark_size(volume) == 24 << 20 && strstr(cryptmark_info(volume), "\"mine\""));
    cryptmark_close(volume);

    /* What is there is asked for. */
    TRUE(cryptmark_create(scratch, options, size, NULL, &error) == CRYPTMARK_PROTECTED);
    TRUE(strcmp(cryptmark_error_question(error), "data") == 0);
    cryptmark_error_free(error);
    error = NULL;
    TRUE(!cryptmark_error_question(NULL));
    EXPECT(CRYPTMARK_PROTECTED, cryptmark_create(scratch, options, size, &calls, &error));
    TRUE(strcmp(told.losses, "data ") == 0);
    told.accepts = 1;
    EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "wipe", "1", &error));
    told.stops = 1;
    EXPECT(CRYPTMARK_INTERRUPTED, cryptmark_create(scratch, options, size, &calls, &error));
    told.stops = 0;
    *told.losses = '\0';
    EXPECT(CRYPTMARK_OK, cryptmark_create(scratch, options, size, &calls, &error));
    TRUE(strcmp(told.losses, "data ") == 0 && told.tells > 1);
    EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "write", "1", &error));
    EXPECT(CRYPTMARK_OK, cryptmark_open(scratch, options, &volume, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_write(volume, 5, (const uint8_t *)"content", 7, &error));
    EXPECT(CRYPTMARK_PROTECTED, cryptmark_reencrypt(scratch, options, NULL, &error));
    cryptmark_close(volume);

    /* Another key: the other key slots are asked for, or kept. */
    EXPECT(CRYPTMARK_OK, cryptmark_key_add(scratch, options, two, 3, NULL, &error));
    TRUE(cryptmark_reencrypt(scratch, options, NULL, &error) == CRYPTMARK_PROTECTED);
    TRUE(strcmp(cryptmark_error_question(error), "keyslots") == 0);
    cryptmark_error_free(error);
    error = NULL;
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_options_keep(NULL, two, 3, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_options_keep(options, two, 3, &error));
    told.stops = 1;
    EXPECT(CRYPTMARK_INTERRUPTED, cryptmark_reencrypt(scratch, options, &calls, &error));
    told.stops = 0;
    EXPECT(CRYPTMARK_OK, cryptmark_reencrypt(scratch, options, &calls, &error));
    TRUE(strcmp(told.losses, "data ") == 0);
    EXPECT(CRYPTMARK_OK, cryptmark_options_secret(options, CRYPTMARK_PASSPHRASE, two, 3, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_open(scratch, options, &volume, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_read(volume, 5, (uint8_t *)word, 7, NULL, &error));
    TRUE(memcmp(word, "content", 7) == 0);
    cryptmark_close(volume);

    /* Decrypted where they are, and encrypted again. */
    EXPECT(CRYPTMARK_PROTECTED, cryptmark_encrypt(scratch, options, &calls, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_decrypt(scratch, options, &calls, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_decrypt(scratch, options, &calls, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_encrypt(scratch, options, &calls, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_open(scratch, options, &volume, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_read(volume, 5, (uint8_t *)word, 7, NULL, &error));
    TRUE(memcmp(word, "content", 7) == 0);
    cryptmark_close(volume);

    /* Smaller, and of another version. */
    EXPECT(CRYPTMARK_PROTECTED, cryptmark_resize(scratch, options, size - 4096, NULL, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_resize(scratch, options, 5000, &calls, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_resize(scratch, options, size - 4096, &calls, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_resize(scratch, options, size + 4096, NULL, &error));
    /* The header of now, kept and put back over one that has lost a key slot and its magic. */
    snprintf(saved, sizeof saved, "%s.saved", scratch);
    EXPECT(CRYPTMARK_OK, cryptmark_header_backup(scratch, options, saved, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_header_backup(scratch, options, saved, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_header_backup(scratch, options, NULL, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_key_add(scratch, options, one, 2, NULL, &error));
    EXPECT(CRYPTMARK_PROTECTED, cryptmark_header_restore(scratch, options, saved, NULL, &error));
    *told.losses = '\0';
    EXPECT(CRYPTMARK_OK, cryptmark_header_restore(scratch, options, saved, &calls, &error));
    TRUE(strcmp(told.losses, "replaced ") == 0);
    TRUE((file = fopen(scratch, "r+b")) && fwrite("nothing", 7, 1, file) == 1 && !fclose(file));
    EXPECT(CRYPTMARK_OK, cryptmark_header_repair(scratch, options, NULL, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_header_repair(scratch, options, NULL, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_open(scratch, options, &volume, &error));
    cryptmark_close(volume);
    TRUE(unlink(saved) == 0);

    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_convert(scratch, options, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "format", "plain", &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_convert(scratch, options, &error));
    cryptmark_options_free(options);
    TRUE(unlink(scratch) == 0);

    /* VeraCrypt, which has one passphrase. */
    options = cryptmark_options_new();
    EXPECT(CRYPTMARK_OK, cryptmark_options_secret(options, CRYPTMARK_PASSPHRASE, one, 3, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "format", "veracrypt", &error));
    EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "veracrypt_pim", "1", &error));
    EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "quick", "1", &error));
    EXPECT(CRYPTMARK_PROTECTED, cryptmark_create(scratch, options, 1 << 20, NULL, &error));
    TRUE(access(scratch, F_OK) != 0);
    EXPECT(CRYPTMARK_OK, cryptmark_create(scratch, options, 1 << 20, &calls, &error));
    if (under_valgrind)
        goto end;
    EXPECT(CRYPTMARK_OK, cryptmark_key_change(scratch, options, two, 3, NULL, &error));
    EXPECT(CRYPTMARK_WRONG_SECRET, cryptmark_open(scratch, options, &volume, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_options_secret(options, CRYPTMARK_PASSPHRASE, two, 3, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_open(scratch, options, &volume, &error));
    cryptmark_close(volume);
    hidden = cryptmark_options_new();
    EXPECT(CRYPTMARK_BAD_INPUT,
           cryptmark_create_hidden(scratch, options, NULL, 1 << 19, &calls, &error));
    EXPECT(CRYPTMARK_BAD_INPUT,
           cryptmark_create_hidden(scratch, options, hidden, 1 << 19, &calls, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_options_secret(hidden, CRYPTMARK_PASSPHRASE, one, 3, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_options_set(hidden, "veracrypt_pim", "1", &error));
    EXPECT(CRYPTMARK_PROTECTED,
           cryptmark_create_hidden(scratch, options, hidden, 1 << 19, NULL, &error));
    *told.losses = '\0';
    EXPECT(CRYPTMARK_OK,
           cryptmark_create_hidden(scratch, options, hidden, 1 << 19, &calls, &error));
    TRUE(strcmp(told.losses, "hidden weak ") == 0);
    cryptmark_options_free(hidden);
end:
    cryptmark_options_free(options);
    TRUE(unlink(scratch) == 0);
}

int main(int argc, char **argv)
{
    char passphrase[100];
    unsigned char bytes[4096];
    cryptmark_error *error = NULL;
    cryptmark_volume *volume = NULL;
    cryptmark_server *server = NULL;
    cryptmark_options *options = cryptmark_options_new();
    pthread_t threads[8];
    char *json = NULL;
    size_t done = 7, nth;
    uint64_t size;
    int status;

    TRUE(argc >= 3 && fgets(passphrase, sizeof passphrase, stdin));
    passphrase[strcspn(passphrase, "\n")] = '\0';
    TRUE(strlen(cryptmark_version()) >= 5);

    /* Null pointers, everywhere. */
    cryptmark_error_free(NULL);
    cryptmark_options_free(NULL);
    cryptmark_close(NULL);
    cryptmark_text_free(NULL);
    TRUE(cryptmark_error_code(NULL) == CRYPTMARK_OK);
    TRUE(cryptmark_size(NULL) == 0 && cryptmark_info(NULL) == NULL);
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_options_set(NULL, "write", "1", &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_options_set(options, NULL, "1", &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_options_set(options, "write", NULL, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_options_set(options, "header", NULL, &error));
    EXPECT(CRYPTMARK_BAD_INPUT,
           cryptmark_options_secret(options, CRYPTMARK_PASSPHRASE, NULL, 3, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_open(NULL, NULL, &volume, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_open(argv[1], NULL, NULL, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_read(NULL, 0, bytes, 1, &done, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_write(NULL, 0, bytes, 1, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_flush(NULL, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_header(NULL, NULL, &json, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_header(argv[1], NULL, NULL, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_serve(NULL, argv[2], &server, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_serve_end(NULL, &error));

    /* Options that are none. */
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_options_set(options, "colour", "1", &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_options_set(options, "write", "yes", &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_options_set(options, "format", "zip", &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_options_set(options, "key_slot", "-1", &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_options_set(options, "cipher", "\xff", &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_options_set(options, "keyfile", "/no/such", &error));
    EXPECT(CRYPTMARK_BAD_INPUT,
           cryptmark_options_secret(options, 99, (const uint8_t *)"x", 1, &error));
    EXPECT(CRYPTMARK_BAD_INPUT,
           cryptmark_options_secret(options, CRYPTMARK_KEY_FILE, bytes, (size_t)-1, &error));

    /* Volumes that do not open. */
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_open("/no/such", options, &volume, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_open("/dev/null", options, &volume, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_open(argv[1], NULL, &volume, &error));
    TRUE(cryptmark_open(argv[1], NULL, &volume, NULL) == CRYPTMARK_BAD_INPUT);
    EXPECT(CRYPTMARK_OK, cryptmark_options_secret(options, CRYPTMARK_PASSPHRASE,
                                                  (const uint8_t *)"wrong", 5, &error));
    EXPECT(CRYPTMARK_WRONG_SECRET, cryptmark_open(argv[1], options, &volume, &error));
    EXPECT(CRYPTMARK_OK,
           cryptmark_options_secret(options, CRYPTMARK_PASSPHRASE, (const uint8_t *)passphrase,
                                    strlen(passphrase), &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_header(argv[1], "veracrypt", &json, &error));
    TRUE(volume == NULL && json == NULL);

    /* What would be lost, and is allowed by its name. */
    {
        cryptmark_options *plain = cryptmark_options_new();

        EXPECT(CRYPTMARK_OK, cryptmark_options_set(plain, "format", "plain", &error));
        EXPECT(CRYPTMARK_OK, cryptmark_options_set(plain, "write", "1", &error));
        EXPECT(CRYPTMARK_OK, cryptmark_options_secret(plain, CRYPTMARK_PASSPHRASE,
                                                      (const uint8_t *)"any", 3, &error));
        TRUE(cryptmark_open(argv[1], plain, &volume, &error) == CRYPTMARK_PROTECTED);
        TRUE(strstr(cryptmark_error_message(error), "holds a LUKS"));
        TRUE(strstr(cryptmark_error_remedy(error), "allow `unencrypted`"));
        cryptmark_error_free(error);
        error = NULL;
        EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_options_set(plain, "allow", "nothing", &error));
        EXPECT(CRYPTMARK_OK, cryptmark_options_set(plain, "allow", "unencrypted", &error));
        EXPECT(CRYPTMARK_OK, cryptmark_open(argv[1], plain, &volume, &error));
        cryptmark_close(volume);
        volume = NULL;
        cryptmark_options_free(plain);
    }

    /* Secrets are added, changed and removed, and the last one stays. */
    {
        cryptmark_options *other = cryptmark_options_new();
        const uint8_t *first = (const uint8_t *)passphrase, *second = (const uint8_t *)"second";
        uint32_t slot = 99;

        EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_key_add(NULL, options, second, 6, &slot, &error));
        EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_key_add(argv[1], NULL, second, 6, &slot, &error));
        EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_key_add(argv[1], other, second, 6, &slot, &error));
        EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_key_add(argv[1], options, NULL, 6, &slot, &error));
        EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_key_add(argv[1], options, NULL, 0, &slot, &error));
        EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_key_change("/no/such", options, second, 6, NULL, &error));
        EXPECT(CRYPTMARK_PROTECTED, cryptmark_key_remove(argv[1], options, &slot, &error));
        TRUE(slot == 99);
        EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_options_set(options, "pbkdf", "md5", &error));
        EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "pbkdf", "pbkdf2", &error));
        EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "iter_time", "1", &error));
        EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "new_key_slot", "5", &error));
        EXPECT(CRYPTMARK_OK, cryptmark_key_add(argv[1], options, second, 6, &slot, &error));
        TRUE(slot == 5);
        EXPECT(CRYPTMARK_OK, cryptmark_options_set(other, "pbkdf", "pbkdf2", &error));
        EXPECT(CRYPTMARK_OK, cryptmark_options_set(other, "iter_time", "1", &error));
        EXPECT(CRYPTMARK_OK,
               cryptmark_options_secret(other, CRYPTMARK_PASSPHRASE, second, 6, &error));
        EXPECT(CRYPTMARK_OK, cryptmark_key_change(argv[1], other, second, 4, &slot, &error));
        TRUE(slot == 5);
        EXPECT(CRYPTMARK_WRONG_SECRET, cryptmark_key_remove(argv[1], other, &slot, &error));
        EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "key_slot", "5", &error));
        EXPECT(CRYPTMARK_OK, cryptmark_key_remove(argv[1], options, &slot, &error));
        cryptmark_options_free(other);
        cryptmark_options_free(options);
        options = cryptmark_options_new();
        EXPECT(CRYPTMARK_OK, cryptmark_options_secret(options, CRYPTMARK_PASSPHRASE, first,
                                                      strlen(passphrase), &error));
    }

    {
        char scratch[4096];

        snprintf(scratch, sizeof scratch, "%s.new", argv[2]);
        operates(scratch, argc > 3);
    }

    /* For reading. */
    EXPECT(CRYPTMARK_OK, cryptmark_header(argv[1], NULL, &json, &error));
    TRUE(strstr(json, "\"uuid\""));
    cryptmark_text_free(json);
    EXPECT(CRYPTMARK_OK, cryptmark_open(argv[1], options, &volume, &error));
    size = cryptmark_size(volume);
    TRUE(size == 2 << 20 && strstr(cryptmark_info(volume), "aes-xts-plain64"));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_write(volume, 0, bytes, 512, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_read(volume, size - 5, bytes, 4096, &done, &error));
    TRUE(done == 5);
    EXPECT(CRYPTMARK_OK, cryptmark_read(volume, UINT64_MAX, bytes, 4096, &done, &error));
    TRUE(done == 0);
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_read(volume, 0, NULL, 4096, &done, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_read(volume, 0, bytes, (size_t)-1, &done, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_read(volume, 0, NULL, 0, NULL, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_flush(volume, &error));
    cryptmark_close(volume);

    /* For writing. */
    EXPECT(CRYPTMARK_OK, cryptmark_options_set(options, "write", "1", &error));
    EXPECT(CRYPTMARK_OK, cryptmark_open(argv[1], options, &shared, &error));
    EXPECT(CRYPTMARK_PROTECTED, cryptmark_open(argv[1], options, &volume, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_write(shared, size - 5, bytes, 6, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_write(shared, UINT64_MAX, bytes, 6, &error));
    for (nth = 0; nth < 8; nth++)
        TRUE(!pthread_create(&threads[nth], NULL, reads_and_writes, (void *)nth));
    for (nth = 0; nth < 8; nth++) {
        void *wrong;
        TRUE(!pthread_join(threads[nth], &wrong) && wrong == NULL);
    }

    /* A forked process gets errors, and closing there leaves the volume held here. */
    fflush(stdout);
    if (fork() == 0) {
        int code = cryptmark_read(shared, 0, bytes, 512, &done, NULL);
        cryptmark_close(shared);
        /* It has no secret either. */
        code += 16 * cryptmark_open(argv[1], options, &volume, NULL);
        cryptmark_options_free(options);
        _exit(code);
    }
    TRUE(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 17 * CRYPTMARK_FAILED);
    if (fork() == 0)
        _exit(cryptmark_serve(shared, argv[2], &server, NULL));
    TRUE(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == CRYPTMARK_FAILED);
    EXPECT(CRYPTMARK_OK, cryptmark_read(shared, 0, bytes, 512, &done, &error));
    EXPECT(CRYPTMARK_PROTECTED, cryptmark_open(argv[1], options, &volume, &error));

    /* Served, and closed by that. */
    EXPECT(CRYPTMARK_OK, cryptmark_serve(shared, argv[2], &server, &error));
    TRUE(access(argv[2], R_OK | W_OK) == 0);
    /* A forked process cannot free what the server's thread has, which is a leak to valgrind. */
    if (argc == 3) {
        fflush(stdout);
        if (fork() == 0)
            _exit(cryptmark_serve_end(server, NULL));
        TRUE(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == CRYPTMARK_FAILED);
        TRUE(access(argv[2], R_OK | W_OK) == 0);
    }
    EXPECT(CRYPTMARK_OK, cryptmark_serve_end(server, &error));
    TRUE(access(argv[2], F_OK) != 0);
    EXPECT(CRYPTMARK_OK, cryptmark_open(argv[1], options, &volume, &error));
    EXPECT(CRYPTMARK_BAD_INPUT, cryptmark_serve(volume, argv[1], &server, &error));
    EXPECT(CRYPTMARK_OK, cryptmark_open(argv[1], options, &volume, &error));
    cryptmark_close(volume);
    cryptmark_options_free(options);
    printf("all done\n");
    return 0;
}

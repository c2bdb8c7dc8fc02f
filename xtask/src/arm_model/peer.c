/* Encrypts or decrypts sectors with OpenSSL or libgcrypt, for `cargo xtask arm-model`.
 *
 * Usage: peer openssl|libgcrypt CIPHER MODE KEY_BYTES encrypt|decrypt [without-aes]
 *
 * The program makes two passes over its sectors, with one IV and one call a sector. Its first two
 * writes to the standard output enclose the second pass. Then it prints a digest of the sectors.
 * engine.rs does the same with the engine. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTORS = 128, SECTOR_BYTES = 4096 };

/* Values of gcrypt.h. */
enum { DISABLE_SECMEM = 37, INITIALIZATION_FINISHED = 38, DISABLE_HWF = 63 };
enum { MODE_CBC = 3, MODE_XTS = 13 };

static uint64_t data[SECTORS * SECTOR_BYTES / 8];
static unsigned char key[64];
static void *object;
static int encrypts;

static void require(int condition, const char *what)
{
	if (!condition) {
		fprintf(stderr, "%s\n", what);
		exit(1);
	}
}

static void *function(const char *name)
{
	void *found = dlsym(object, name);
	require(found != NULL, name);
	return found;
}

static void load(const char *library)
{
	object = dlopen(library, RTLD_NOW);
	require(object != NULL, library);
}

/* OpenSSL, as openssl/evp.h declares it. */
static int (*evp_init)(void *, const void *, void *, const unsigned char *, const unsigned char *,
		       int);
static int (*evp_update)(void *, unsigned char *, int *, const unsigned char *, int);
static void *context;

static void openssl_open(const char *name, int key_bytes)
{
	load("libcrypto.so.3");
	void *(*provider)(void *, const char *) = function("OSSL_PROVIDER_load");
	void *(*fetch)(void *, const char *, const char *) = function("EVP_CIPHER_fetch");
	void *(*new)(void) = function("EVP_CIPHER_CTX_new");
	int (*key_length)(void *, int) = function("EVP_CIPHER_CTX_set_key_length");
	int (*padding)(void *, int) = function("EVP_CIPHER_CTX_set_padding");
	evp_init = function("EVP_CipherInit_ex");
	evp_update = function("EVP_CipherUpdate");
	require(provider(NULL, "default") && provider(NULL, "legacy"), "providers");
	void *cipher = fetch(NULL, name, NULL);
	context = new();
	require(cipher && context, name);
	require(evp_init(context, cipher, NULL, NULL, NULL, encrypts) == 1, "cipher");
	require(key_length(context, key_bytes) == 1, "key length");
	require(evp_init(context, NULL, NULL, key, NULL, -1) == 1, "key");
	require(padding(context, 0) == 1, "padding");
}

static void openssl_sector(const unsigned char iv[16], unsigned char *sector)
{
	int written = 0;
	require(evp_init(context, NULL, NULL, NULL, iv, -1) == 1, "IV");
	require(evp_update(context, sector, &written, sector, SECTOR_BYTES) == 1, "sector");
	require(written == SECTOR_BYTES, "length");
}

/* libgcrypt, as gcrypt.h declares it. */
static unsigned (*gcry_set_iv)(void *, const void *, size_t);
static unsigned (*gcry_crypt)(void *, void *, size_t, const void *, size_t);
static void *handle;
static size_t iv_bytes;

static void libgcrypt_open(const char *name, const char *mode, int key_bytes, int without_aes)
{
	load("libgcrypt.so.20");
	unsigned (*control)(unsigned, ...) = function("gcry_control");
	const char *(*check)(const char *) = function("gcry_check_version");
	int (*map)(const char *) = function("gcry_cipher_map_name");
	size_t (*block_bytes)(int) = function("gcry_cipher_get_algo_blklen");
	unsigned (*open)(void **, int, int, unsigned) = function("gcry_cipher_open");
	unsigned (*set_key)(void *, const void *, size_t) = function("gcry_cipher_setkey");
	gcry_set_iv = function("gcry_cipher_setiv");
	gcry_crypt = function(encrypts ? "gcry_cipher_encrypt" : "gcry_cipher_decrypt");
	if (without_aes) {
		control(DISABLE_HWF, "arm-aes", NULL);
		control(DISABLE_HWF, "arm-pmull", NULL);
	}
	require(check(NULL) != NULL, "version");
	control(DISABLE_SECMEM, 0);
	control(INITIALIZATION_FINISHED, 0);
	int algorithm = map(name);
	iv_bytes = block_bytes(algorithm);
	require(!open(&handle, algorithm, strcmp(mode, "xts") ? MODE_CBC : MODE_XTS, 0), name);
	require(!set_key(handle, key, key_bytes), "key");
}

static void libgcrypt_sector(const unsigned char iv[16], unsigned char *sector)
{
	require(!gcry_set_iv(handle, iv, iv_bytes), "IV");
	require(!gcry_crypt(handle, sector, SECTOR_BYTES, NULL, 0), "sector");
}

static void pass(void (*crypt_sector)(const unsigned char[16], unsigned char *))
{
	for (uint64_t i = 0; i < SECTORS; i++) {
		/* plain64 counts units of 512 bytes. */
		uint64_t iv[2] = { i * (SECTOR_BYTES / 512), 0 };
		crypt_sector((const unsigned char *)iv, (unsigned char *)data + i * SECTOR_BYTES);
	}
}

static void say(const char *line)
{
	puts(line);
	fflush(stdout);
}

int main(int count, char **arguments)
{
	require(count == 6 || count == 7, "LIBRARY CIPHER MODE KEY_BYTES DIRECTION [without-aes]");
	int key_bytes = atoi(arguments[4]);
	require(key_bytes > 0 && key_bytes <= (int)sizeof key, "key length");
	for (int i = 0; i < key_bytes; i++)
		key[i] = 7 * i + 1;
	encrypts = !strcmp(arguments[5], "encrypt");
	int openssl = !strcmp(arguments[1], "openssl");
	if (openssl)
		openssl_open(arguments[2], key_bytes);
	else
		libgcrypt_open(arguments[2], arguments[3], key_bytes, count == 7);
	void (*crypt_sector)(const unsigned char[16], unsigned char *) =
		openssl ? openssl_sector : libgcrypt_sector;
	pass(crypt_sector);
	say("begin");
	pass(crypt_sector);
	say("end");
	uint64_t digest = 0xcbf29ce484222325;
	for (size_t i = 0; i < sizeof data / sizeof *data; i++)
		digest = (digest ^ data[i]) * 0x100000001b3;
	printf("%016llx\n", (unsigned long long)digest);
	return 0;
}

/* cryptmark: opens encrypted volumes in user space.
 *
 * LUKS1, LUKS2, plain dm-crypt, TrueCrypt, VeraCrypt, BitLocker, FileVault 2, cryptoloop, loop-AES,
 * BestCrypt. See cryptmark(3). This file is generated.
 *
 * Volumes, options, servers, errors and texts to be freed come from this library, and are not closed,
 * freed or ended yet. `path` and other constant texts end in a zero byte. `secret`, `data` and
 * `buffer` have `length` bytes. `error`, `calls`, `slot` and `done` may be NULL. */

#ifndef CRYPTMARK_H
#define CRYPTMARK_H

#include <stddef.h>
#include <stdint.h>

// The bytes of a passphrase, without a newline.
#define CRYPTMARK_PASSPHRASE 0

// The bytes of a key file.
#define CRYPTMARK_KEY_FILE 1

// The key that encrypts the data.
#define CRYPTMARK_VOLUME_KEY 2

// An error. Free it with cryptmark_error_free.
typedef struct cryptmark_error cryptmark_error;

// How to open a volume. Free it with cryptmark_options_free.
typedef struct cryptmark_options cryptmark_options;

// A server of one volume. End it with cryptmark_serve_end.
typedef struct cryptmark_server cryptmark_server;

// An open volume. Close it with cryptmark_close.
//
// Any number of threads may read and write at a time. It belongs to the process that opened it: a
// process that was forked from that one gets errors.
typedef struct cryptmark_volume cryptmark_volume;

// What came of a call: one of the codes that follow.
typedef int cryptmark_code;

// What a long call asks and tells. Each function may be NULL.
typedef struct {
  // What the functions are called with.
  void *user;
  // Whether a loss is accepted: not 0 for yes. `loss` is its name, as the option "allow" has it,
  // and `found` says in UTF-8 what was found. All questions come before anything is written, on
  // the calling thread. NULL accepts nothing.
  int (*ask)(void *user, const char *loss, const char *found);
  // How many bytes are done, of how many. Not 0 stops, and the call gives CRYPTMARK_INTERRUPTED.
  // It is called on any thread, by one at a time.
  int (*progress)(void *user, uint64_t done, uint64_t total);
} cryptmark_calls;

// It was done.
#define CRYPTMARK_OK 0

// It was possible, and failed.
#define CRYPTMARK_FAILED 1

// An argument, an option, a header or a file cannot be used.
#define CRYPTMARK_BAD_INPUT 2

// The passphrase or key fits nothing.
#define CRYPTMARK_WRONG_SECRET 3

// It was refused, because data would be lost.
#define CRYPTMARK_PROTECTED 4

// A callback of the caller has stopped it.
#define CRYPTMARK_INTERRUPTED 130

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of the library, such as "0.2.0".
const char *cryptmark_version(void);

// Frees a text that a call has given. NULL is allowed.
void cryptmark_text_free(char *text);

// The code of an error.
cryptmark_code cryptmark_error_code(const cryptmark_error *error);

// What happened, as a sentence without a full stop in UTF-8. It lives as long as the error.
const char *cryptmark_error_message(const cryptmark_error *error);

// What to do about it, as sentences in UTF-8. It lives as long as the error.
const char *cryptmark_error_remedy(const cryptmark_error *error);

// The name of the loss that the option "allow" accepts, or NULL if there is none. It lives as long
// as the error.
const char *cryptmark_error_question(const cryptmark_error *error);

// Frees an error. NULL is allowed.
void cryptmark_error_free(cryptmark_error *error);

// New options: a volume with a signature, for reading.
cryptmark_options *cryptmark_options_new(void);

// Frees options, and wipes their secret. NULL is allowed.
void cryptmark_options_free(cryptmark_options *options);

// Sets an option by its name; cryptmark(3) lists them. Yes and no are "1" and "0".
cryptmark_code cryptmark_options_set(cryptmark_options *options,
                                     const char *name,
                                     const char *value,
                                     cryptmark_error **error);

// Sets the secret, of the kind CRYPTMARK_PASSPHRASE, CRYPTMARK_KEY_FILE or CRYPTMARK_VOLUME_KEY.
// Its bytes are copied to memory that is locked, and may be wiped afterwards.
cryptmark_code cryptmark_options_secret(cryptmark_options *options,
                                        int kind,
                                        const uint8_t *secret,
                                        size_t length,
                                        cryptmark_error **error);

// Adds a secret of another key slot that cryptmark_reencrypt keeps. Its bytes are copied to memory
// that is locked, and may be wiped afterwards.
cryptmark_code cryptmark_options_keep(cryptmark_options *options,
                                      const uint8_t *secret,
                                      size_t length,
                                      cryptmark_error **error);

// Opens the volume in the file or on the block device at `path`.
//
// `options` may be NULL for a volume that needs no secret. `*volume` is set if the code is
// CRYPTMARK_OK.
cryptmark_code cryptmark_open(const char *path,
                              const cryptmark_options *options,
                              cryptmark_volume **volume,
                              cryptmark_error **error);

// Closes a volume. What was written since the last cryptmark_flush is as safe as with a file. No
// other thread may use the volume. NULL is allowed.
void cryptmark_close(cryptmark_volume *volume);

// Bytes of the volume.
uint64_t cryptmark_size(const cryptmark_volume *volume);

// What is known of the volume, as JSON in UTF-8. It lives as long as the volume.
const char *cryptmark_info(const cryptmark_volume *volume);

// Reads `length` bytes from byte `offset` on, or what there is of them before the end of the
// volume. `*done` is set to their number.
cryptmark_code cryptmark_read(const cryptmark_volume *volume,
                              uint64_t offset,
                              uint8_t *buffer,
                              size_t length,
                              size_t *done,
                              cryptmark_error **error);

// Writes all `length` bytes at byte `offset`. Nothing is written beyond the end of the volume, and
// then nothing at all.
cryptmark_code cryptmark_write(const cryptmark_volume *volume,
                               uint64_t offset,
                               const uint8_t *data,
                               size_t length,
                               cryptmark_error **error);

// Returns when everything that was written is on the storage.
cryptmark_code cryptmark_flush(const cryptmark_volume *volume, cryptmark_error **error);

// What the header of the volume at `path` says without any secret, as JSON in UTF-8. `format` is
// NULL if the signature tells. Free `*json` with cryptmark_text_free.
cryptmark_code cryptmark_header(const char *path,
                                const char *format_name,
                                char **json,
                                cryptmark_error **error);

// Adds a key slot of the LUKS volume at `path`, which opens with the `length` bytes at `secret`.
// `*slot` is set to its number.
//
// `options` have the secret that opens the volume now. The options "pbkdf" and "iter_time" say how
// long opening takes with the new one, and "new_key_slot" where it is kept.
cryptmark_code cryptmark_key_add(const char *path,
                                 const cryptmark_options *options,
                                 const uint8_t *secret,
                                 size_t length,
                                 uint32_t *slot,
                                 cryptmark_error **error);

// Gives the key slot that the secret of `options` opens the `length` bytes at `secret` instead.
// `*slot` is set to its number, which LUKS1 changes. The old secret opens until the new one does. A
// TrueCrypt or VeraCrypt volume, which the option "format" names, has one passphrase, and no slots.
cryptmark_code cryptmark_key_change(const char *path,
                                    const cryptmark_options *options,
                                    const uint8_t *secret,
                                    size_t length,
                                    uint32_t *slot,
                                    cryptmark_error **error);

// Removes the key slot that the option "key_slot" names, or the one that the secret of `options`
// opens. `*slot` is set to its number. The last one of the data is removed only with the option
// "last_key"; the data are lost then.
cryptmark_code cryptmark_key_remove(const char *path,
                                    const cryptmark_options *options,
                                    uint32_t *slot,
                                    cryptmark_error **error);

// Makes a volume in the file or on the block device at `path`: of the option "format", or LUKS2. A
// file that does not exist is made, `bytes` long; for others, `bytes` is not used. The secret of the
// options opens the volume then; "pbkdf" and "iter_time" say how long that takes.
cryptmark_code cryptmark_create(const char *path,
                                const cryptmark_options *options,
                                uint64_t bytes,
                                const cryptmark_calls *calls,
                                cryptmark_error **error);

// Makes a hidden volume of `bytes` bytes at the end of the TrueCrypt or VeraCrypt volume at `path`,
// which the secret of `outer` opens. The hidden volume gets the secret, cipher, hash, PIM and key
// files of `hidden`. What the outer volume has there is lost, and so is another hidden volume.
cryptmark_code cryptmark_create_hidden(const char *path,
                                       const cryptmark_options *outer,
                                       const cryptmark_options *hidden,
                                       uint64_t bytes,
                                       const cryptmark_calls *calls,
                                       cryptmark_error **error);

// Gives the data of the LUKS2, TrueCrypt or VeraCrypt volume at `path` another key, and the cipher,
// key_size, sector_size and hash of the options. The secret of the options stays, and those of
// cryptmark_options_keep. A change that was stopped is continued. The volume opens at any time, with
// the file PATH.cryptmark-header if there is one meanwhile.
cryptmark_code cryptmark_reencrypt(const char *path,
                                   const cryptmark_options *options,
                                   const cryptmark_calls *calls,
                                   cryptmark_error **error);

// Encrypts the data at `path` where they are, as a LUKS2 volume that the secret of the options opens.
// A file gets room for the header; a device needs the option "header". Call it again to continue.
cryptmark_code cryptmark_encrypt(const char *path,
                                 const cryptmark_options *options,
                                 const cryptmark_calls *calls,
                                 cryptmark_error **error);

// Decrypts the LUKS2 volume at `path` where it is, for good. Call it again to continue.
cryptmark_code cryptmark_decrypt(const char *path,
                                 const cryptmark_options *options,
                                 const cryptmark_calls *calls,
                                 cryptmark_error **error);

// Makes the LUKS volume at `path` one of the option "format", luks1 or luks2. Its key slots and data
// stay.
cryptmark_code cryptmark_convert(const char *path,
                                 const cryptmark_options *options,
                                 cryptmark_error **error);

// Gives the volume at `path`, with its header, the length `bytes`. A TrueCrypt or VeraCrypt volume
// needs its format and secret in the options, and can only become larger.
cryptmark_code cryptmark_resize(const char *path,
                                const cryptmark_options *options,
                                uint64_t bytes,
                                const cryptmark_calls *calls,
                                cryptmark_error **error);

// Copies the header and key slots of the volume at `path` to the new file `output`, which only this
// user may read. Keep it as secret as the volume. TrueCrypt and VeraCrypt need the option "format".
cryptmark_code cryptmark_header_backup(const char *path,
                                       const cryptmark_options *options,
                                       const char *output,
                                       cryptmark_error **error);

// Puts the header and key slots in the file `input` back to the volume at `path`. TrueCrypt and
// VeraCrypt need the option "format", and the secret that opens the header in the file.
cryptmark_code cryptmark_header_restore(const char *path,
                                        const cryptmark_options *options,
                                        const char *input,
                                        const cryptmark_calls *calls,
                                        cryptmark_error **error);

// Mends the header of the volume at `path` from its other copy, or from the remains of both. A
// secret in the options proves that a LUKS header is right; TrueCrypt and VeraCrypt need it, and the
// option "format".
cryptmark_code cryptmark_header_repair(const char *path,
                                       const cryptmark_options *options,
                                       const cryptmark_calls *calls,
                                       cryptmark_error **error);

// Serves the volume over NBD at the socket `path`, in a thread of its own. The volume belongs to
// the server afterwards, whatever the code is: do not close it. Only this user may connect.
// `*server` is set if the code is CRYPTMARK_OK.
cryptmark_code cryptmark_serve(cryptmark_volume *volume,
                               const char *path,
                               cryptmark_server **server,
                               cryptmark_error **error);

// Lets the server answer what it has received, flushes the volume and closes it. The code says
// whether all that clients wrote is on the storage.
cryptmark_code cryptmark_serve_end(cryptmark_server *server, cryptmark_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* CRYPTMARK_H */

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import javax.crypto.Cipher;
import javax.crypto.spec.IvParameterSpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * One-shot encryption with SunJCE, timed on request.
 *
 * A line on standard input is a request, a line on standard output its answer:
 *
 * <pre>
 * prepare CIPHER MODE encrypt|decrypt KEY IV BYTES SEED    ready
 * warm                                                     warm OPERATIONS MILLISECONDS
 * time                                                     time NANOSECONDS
 * digest                                                   digest SHA-256 of the last output
 * </pre>
 *
 * KEY and IV are hexadecimal, "-" where there is none. What went wrong is
 * answered with "error" and a word. Only the call of doFinal is timed, from
 * one buffer into another, without padding. By hand: java CryptBench.java
 */
public final class CryptBench {
    /** The JIT is at rest when it compiled nothing for so long and so many operations. */
    private static final long REST_NANOSECONDS = 500_000_000L;
    private static final int REST_OPERATIONS = 10;
    /** A JIT that is still busy after this will not come to rest. */
    private static final long MOST_NANOSECONDS = 30_000_000_000L;

    private final Cipher cipher;
    private final byte[] input;
    private final byte[] output;

    private CryptBench(String[] request) throws GeneralSecurityException {
        String name = request[1];
        String mode = request[2];
        int direction = request[3].equals("encrypt") ? Cipher.ENCRYPT_MODE : Cipher.DECRYPT_MODE;
        SecretKeySpec key = new SecretKeySpec(bytes(request[4]), name);
        cipher = Cipher.getInstance(name + "/" + mode + "/NoPadding", "SunJCE");
        if (request[5].equals("-")) {
            cipher.init(direction, key);
        } else {
            cipher.init(direction, key, new IvParameterSpec(bytes(request[5])));
        }
        input = pattern(Integer.parseInt(request[6]), Long.parseUnsignedLong(request[7]));
        output = new byte[input.length];
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        CryptBench bench = null;
        String line;
        while ((line = requests.readLine()) != null) {
            String[] request = line.split(" ");
            String answer;
            try {
                switch (request[0]) {
                    case "prepare":
                        bench = new CryptBench(request);
                        answer = "ready";
                        break;
                    case "warm":
                        answer = bench.warm();
                        break;
                    case "time":
                        answer = "time " + bench.operation();
                        break;
                    case "digest":
                        answer = "digest " + bench.digest();
                        break;
                    default:
                        answer = "error unknown request";
                }
            } catch (GeneralSecurityException | RuntimeException failure) {
                answer = ("error " + failure).replace('\n', ' ');
            }
            System.out.println(answer);
            System.out.flush();
        }
    }

    /** Nanoseconds of one operation. */
    private long operation() throws GeneralSecurityException {
        long start = System.nanoTime();
        cipher.doFinal(input, 0, input.length, output, 0);
        return System.nanoTime() - start;
    }

    /** Repeats the operation until the JIT has come to rest. */
    private String warm() throws GeneralSecurityException {
        CompilationMXBean jit = ManagementFactory.getCompilationMXBean();
        if (jit == null || !jit.isCompilationTimeMonitoringSupported()) {
            return "error this JVM does not say what its JIT does";
        }
        long start = System.nanoTime();
        long spent = jit.getTotalCompilationTime();
        long restSince = start;
        int operations = 0;
        int inRest = 0;
        while (true) {
            operation();
            operations++;
            inRest++;
            long now = System.nanoTime();
            long spentNow = jit.getTotalCompilationTime();
            if (spentNow != spent) {
                spent = spentNow;
                restSince = now;
                inRest = 0;
            }
            if (now - restSince >= REST_NANOSECONDS && inRest >= REST_OPERATIONS) {
                return "warm " + operations + " " + (now - start) / 1_000_000;
            }
            if (now - start >= MOST_NANOSECONDS) {
                return "error the JIT did not come to rest";
            }
        }
    }

    private String digest() throws GeneralSecurityException {
        StringBuilder hex = new StringBuilder();
        for (byte value : MessageDigest.getInstance("SHA-256").digest(output)) {
            hex.append(Character.forDigit(value >> 4 & 15, 16));
            hex.append(Character.forDigit(value & 15, 16));
        }
        return hex.toString();
    }

    /** Marsaglia's xorshift64 (13, 7, 17), eight bytes a step, little endian. */
    private static byte[] pattern(int length, long state) {
        byte[] pattern = new byte[length];
        for (int at = 0; at < length; at++) {
            if (at % 8 == 0) {
                state ^= state << 13;
                state ^= state >>> 7;
                state ^= state << 17;
            }
            pattern[at] = (byte) (state >>> 8 * (at % 8));
        }
        return pattern;
    }

    private static byte[] bytes(String hex) {
        byte[] bytes = new byte[hex.length() / 2];
        for (int at = 0; at < bytes.length; at++) {
            bytes[at] = (byte) Integer.parseInt(hex.substring(2 * at, 2 * at + 2), 16);
        }
        return bytes;
    }
}

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** The stream of jobs: what is random in them, by their number. */
final class Stream {
    private static final double UNIT = 0x1p-53;
    private static final VarHandle LONGS =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final long seed;
    private final String shape;
    private final boolean uniform;
    private final long spread;
    private long[] delays; // by number, where they are costly to make

    Stream(Options o, long count) {
        seed = o.seed;
        shape = o.shape;
        uniform = shape.equals("uniform");
        spread = o.spread;
        if (shape.equals("exponential") || shape.equals("heavy") || shape.equals("decades")) {
            long[] all = new long[Math.toIntExact(count)];
            for (int i = 0; i < all.length; i++) {
                all[i] = shaped(i);
            }
            delays = all;
        }
    }

    static long mix(long x) {
        x ^= x >>> 30;
        x *= 0xbf58476d1ce4e5b9L;
        x ^= x >>> 27;
        x *= 0x94d049bb133111ebL;
        return x ^ (x >>> 31);
    }

    private long random(long number) {
        return mix(seed + number * 0x9e3779b97f4a7c15L);
    }

    long delay(long number) {
        if (delays != null) {
            return delays[(int) number];
        }
        if (uniform) {
            return (long) ((random(number) >>> 11) * UNIT * spread);
        }
        return shaped(number);
    }

    private long shaped(long number) {
        long r = random(number);
        double u = ((r >>> 11) + 0.5) * UNIT;
        return switch (shape) {
            case "exponential" -> clip(-Math.log(u) * spread / 8);
            case "clustered" -> (long) ((double) spread * (r & 15) / 16)
                    + (r >>> 11) % Math.max(spread / 10_000, 1);
            case "heavy" -> clip(spread / 1e4 * (Math.pow(u, -1 / 1.1) - 1));
            case "sawtooth" -> spread - spread / 1000 * (number % 1000);
            case "equal" -> spread / 2;
            default -> clip(Math.pow(10, 9 * u) * spread / 1e9); // decades
        };
    }

    private long clip(double ns) {
        return ns < spread ? (long) ns : spread;
    }

    /** The spread with a mean delay of about a second. */
    static long meanSpread(String shape) {
        return switch (shape) {
            case "exponential" -> 8 * Clock.SECOND;
            case "heavy" -> 1661 * Clock.SECOND;
            case "decades" -> Clock.SECOND * 207 / 10;
            default -> 2 * Clock.SECOND;
        };
    }

    /** The order in which so many things are cancelled. */
    int[] shuffled(int n) {
        int[] order = new int[n];
        for (int i = 0; i < n; i++) {
            order[i] = i;
        }
        for (long i = n; i > 1; i--) {
            int k = (int) Long.remainderUnsigned(random(-1 - i), i);
            int swap = order[(int) i - 1];
            order[(int) i - 1] = order[k];
            order[k] = swap;
        }
        return order;
    }

    /** The number, repeated; or null. */
    static byte[] payload(long number, int size) {
        if (size == 0) {
            return null;
        }
        byte[] bytes = new byte[size];
        int end = size - size % 8;
        for (int at = 0; at < end; at += 8) {
            LONGS.set(bytes, at, number);
        }
        for (int at = end; at < size; at++) {
            bytes[at] = (byte) (number >>> 8 * (at - end));
        }
        return bytes;
    }

    static boolean intact(long number, byte[] bytes, int size) {
        if (size == 0 || bytes == null) {
            return size == 0 && bytes == null;
        }
        int last = size - size % 8 - 8;
        return bytes.length == size && (long) LONGS.get(bytes, 0) == number
                && (long) LONGS.get(bytes, last) == number;
    }
}

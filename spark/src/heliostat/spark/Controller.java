package heliostat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.URI;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.LongSupplier;

/**
 * REST to the daemon, over its unix socket or over TCP. No call takes longer than the timeout. After a call that got no answer
 * there are none for a while, so that a daemon that is gone costs a job one timeout now and then.
 */
final class Controller {
    /** No answer came, or none was asked for since the daemon did not answer lately. */
    static final class Gone extends IOException {
        private static final long serialVersionUID = 1;

        Gone(String why) {
            super(why);
        }
    }

    /** An answer that is not a success. */
    static final class Refused extends IOException {
        private static final long serialVersionUID = 1;

        Refused(String why) {
            super(why);
        }
    }

    static final ObjectMapper JSON = new ObjectMapper();
    /** How long a daemon that did not answer is left alone, in milliseconds. */
    static final long PAUSE_MS = 10_000;
    /** The longest answer that is read. */
    private static final int MAX_ANSWER = 1 << 26;

    private final SocketAddress address;
    private final String token;
    private final long timeoutMs;
    private final LongSupplier clockMs;
    private final ExecutorService threads =
            Executors.newCachedThreadPool(
                    work -> {
                        Thread t = new Thread(work, "heliostat-request");
                        t.setDaemon(true);
                        return t;
                    });
    private long silentUntil = Long.MIN_VALUE;

    /**
     * @param where {@code unix:/path} or {@code http://host:port}
     * @param token the bearer token, or null
     * @param timeoutMs the longest time that a call takes
     * @param clockMs a clock that never goes back
     * @throws IllegalArgumentException if the address is neither
     */
    Controller(String where, String token, long timeoutMs, LongSupplier clockMs) {
        if (where.startsWith("unix:")) {
            address = UnixDomainSocketAddress.of(where.substring(5));
        } else {
            URI uri = where.startsWith("http://") ? URI.create(where) : null;
            if (uri == null || uri.getHost() == null || uri.getPort() < 0) {
                throw new IllegalArgumentException(
                        "spark.heliostat.controller=" + where + ": it must be unix:/path or http://host:port");
            }
            address = new InetSocketAddress(uri.getHost(), uri.getPort());
        }
        this.token = token;
        this.timeoutMs = timeoutMs;
        this.clockMs = clockMs;
    }

    /**
     * Sends a request and waits for its answer; an answer without a body is null.
     *
     * @throws Gone if there was no answer
     * @throws Refused if the answer is an error
     */
    JsonNode call(String method, String path, Object body) throws IOException {
        synchronized (this) {
            if (clockMs.getAsLong() < silentUntil) throw new Gone("it did not answer lately");
        }
        byte[] sent = body == null ? new byte[0] : JSON.writeValueAsBytes(body);
        SocketChannel[] open = new SocketChannel[1];
        Future<String> answer = threads.submit(() -> exchange(open, method, path, sent));
        try {
            String text = answer.get(timeoutMs, TimeUnit.MILLISECONDS);
            return text.isEmpty() ? null : JSON.readTree(text);
        } catch (TimeoutException e) {
            throw gone("no answer within " + timeoutMs + " ms");
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new Gone("interrupted");
        } catch (ExecutionException e) {
            if (e.getCause() instanceof Refused refused) throw refused;
            throw gone(String.valueOf(e.getCause().getMessage()));
        } finally {
            answer.cancel(true);
            synchronized (open) {
                if (open[0] != null) open[0].close();
            }
        }
    }

    private synchronized Gone gone(String why) {
        silentUntil = clockMs.getAsLong() + PAUSE_MS;
        return new Gone(why);
    }

    private String exchange(SocketChannel[] open, String method, String path, byte[] body) throws IOException {
        boolean unix = address instanceof UnixDomainSocketAddress;
        SocketChannel channel = unix ? SocketChannel.open(StandardProtocolFamily.UNIX) : SocketChannel.open();
        try (channel) {
            synchronized (open) {
                open[0] = channel;
            }
            channel.connect(address);
            // HTTP/1.0: the answer ends with the connection, and is never cut into chunks.
            StringBuilder head = new StringBuilder(method + " " + path + " HTTP/1.0\r\nhost: localhost\r\n");
            if (body.length > 0) head.append("content-type: application/json\r\n");
            if (token != null) head.append("authorization: Bearer ").append(token).append("\r\n");
            head.append("content-length: ").append(body.length).append("\r\n\r\n");
            ByteArrayOutputStream all = new ByteArrayOutputStream();
            all.writeBytes(head.toString().getBytes(StandardCharsets.US_ASCII));
            all.writeBytes(body);
            ByteBuffer request = ByteBuffer.wrap(all.toByteArray());
            while (request.hasRemaining()) channel.write(request);
            return content(method + " " + path, read(channel));
        }
    }

    /**
     * The body of an answer.
     *
     * @throws Refused if its status is not one of success
     */
    static String content(String request, String answer) throws IOException {
        int end = answer.indexOf("\r\n\r\n");
        if (end < 0 || !answer.matches("(?s)HTTP/1\\.[01] [1-5]\\d\\d.*")) throw new IOException("the answer is no HTTP");
        int status = Integer.parseInt(answer.substring(9, 12));
        String body = answer.substring(end + 4);
        if (status >= 300) throw new Refused(request + ": " + status + " " + body);
        return body;
    }

    private static String read(SocketChannel channel) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        ByteBuffer buffer = ByteBuffer.allocate(1 << 16);
        while (channel.read(buffer) >= 0) {
            all.write(buffer.array(), 0, buffer.position());
            buffer.clear();
            if (all.size() > MAX_ANSWER) throw new IOException("an answer of more than " + MAX_ANSWER + " bytes");
        }
        return all.toString(StandardCharsets.UTF_8);
    }
}

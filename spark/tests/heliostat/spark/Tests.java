package heliostat.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Tests of the plug-in; each prints a line PASS or FAIL. */
public final class Tests {
    private interface Test {
        void run() throws Exception;
    }

    private static int failed;

    private Tests() {}

    public static void main(String[] args) {
        test("pairs follow where tasks run", Tests::pairs);
        test("tasks that have not started are spread over the slots", Tests::spread);
        test("sizes are corrected by what was written", Tests::correction);
        test("bytes of each task are told", Tests::maps);
        test("a placement holds until the patience ends", Tests::placement);
        test("tasks that are alike fill racks in order", Tests::inOrder);
        test("waves offer slots several times", Tests::waves);
        test("a mode that does not exist is refused", Tests::modes);
        test("tasks read the blocks that are said, also under adaptive execution", AdaptiveTests::run);
        test("jobs are told with their tasks", Tests::board);
        test("long names are cut", Tests::names);
        test("an address that makes no sense is refused", Tests::addresses);
        test("answers are read, and errors told", Tests::answers);
        test("a daemon that hangs costs one timeout", Tests::hangs);
        test("a daemon that is not there is asked again later", Tests::gone);
        System.exit(failed == 0 ? 0 : 1);
    }

    private static void test(String name, Test test) {
        try {
            test.run();
            System.out.println("PASS spark plug-in: " + name);
        } catch (Exception | AssertionError e) {
            failed++;
            System.out.println("FAIL spark plug-in: " + name + ": " + e);
        }
    }

    static void same(Object left, Object right) {
        if (!Objects.equals(left, right)) throw new AssertionError(left + " is not " + right);
    }

    private static JsonNode json(String text) throws IOException {
        return Controller.JSON.readTree(text.replace('\'', '"'));
    }

    private static JsonNode tree(Object value) throws IOException {
        return Controller.JSON.readTree(Controller.JSON.writeValueAsString(value));
    }

    private static Shuffle.Pair pair(int from, int to) {
        return new Shuffle.Pair(from, to);
    }

    /** Rack 0 has 100 bytes for task 0 and 60 for task 1, rack 2 has 10 for each. */
    private static Shuffle shuffle() {
        Shuffle s = new Shuffle(3, 2);
        s.add(0, 0, 100);
        s.add(0, 1, 60);
        s.addEvenly(2, 20);
        return s;
    }

    private static void pairs() {
        Shuffle s = shuffle();
        same(s.bytes(), 180L);
        same(s.pairs(Map.of(0, 1, 1, 2), Map.of()), new TreeMap<>(Map.of(pair(0, 1), 100L, pair(0, 2), 60L, pair(2, 1), 10L)));
        same(s.pairs(Map.of(0, 0, 1, 0), Map.of()), new TreeMap<>(Map.of(pair(2, 0), 20L)));
    }

    private static void spread() {
        // Task 1 is in rack 2 or, three times as likely, in rack 1.
        var expected = new TreeMap<>(Map.of(pair(0, 1), 45L, pair(0, 2), 15L, pair(2, 0), 10L, pair(2, 1), 8L));
        same(shuffle().pairs(Map.of(0, 0), Map.of(1, 3, 2, 1)), expected);
    }

    private static void correction() {
        same(Shuffle.correction(110, 100), 100.0 / 110);
        same(Shuffle.correction(100, 100), 1.0);
        same(Shuffle.correction(100, 0), 1.0);
        // Output that was written twice, or of which a part was lost.
        same(Shuffle.correction(100, 200), 1.0);
        same(Shuffle.correction(100, 50), 1.0);
    }

    private static void maps() throws IOException {
        String all = "[{'rack':0,'bytes':160,'by_task':[100,60]},{'rack':2,'bytes':20,'by_task':[10,10]}]";
        same(tree(Coflows.maps(shuffle())), json(all));
        Shuffle large = new Shuffle(1, 20_001);
        large.addEvenly(0, 20_001);
        same(tree(Coflows.maps(large)), json("[{'rack':0,'bytes':20001}]"));
    }

    private static void placement() {
        Placement p = new Placement(new int[] {1, 0, 1}, 1000, 0);
        same(p.start(2, t -> true, 999), -1);
        same(p.start(1, t -> true, 999), 0);
        same(p.start(1, t -> t != 0, 999), 2);
        // Task 1 is left, and meant for rack 0.
        same(p.start(1, t -> t == 1, 1998), -1);
        same(p.start(1, t -> t == 1, 1999), 1);
        // A rack takes its own first, also after the patience.
        same(p.start(0, t -> true, 5000), 1);
    }

    private static void inOrder() {
        same(Arrays.toString(Placement.inOrder(Map.of(3, 1, 0, 2))), "[0, 0, 3]");
    }

    private static void waves() {
        Map<Integer, Integer> slots = Map.of(0, 2, 1, 1);
        same(Slots.offered(slots, Map.of(), 3), new TreeMap<>(Map.of(0, 2, 1, 1)));
        same(Slots.offered(slots, Map.of(0, 2), 1), new TreeMap<>(Map.of(1, 1)));
        same(Slots.offered(slots, Map.of(), 7), new TreeMap<>(Map.of(0, 6, 1, 3)));
        same(Slots.offered(slots, Map.of(0, 2, 1, 1), 2), new TreeMap<>(Map.of(0, 2, 1, 1)));
        same(Slots.offered(Map.of(), Map.of(), 2), new TreeMap<>());
    }

    private static void modes() {
        same(Settings.mode("declare"), Settings.Mode.DECLARE);
        refused(() -> Settings.mode("Place"), "off, declare or place");
    }

    private static void board() throws IOException {
        Board b = new Board(7, "x".repeat(100), "Spark, mode place");
        same(b.report(1, 8), null);
        // Two jobs of Spark are one query.
        b.starts(Board.name(3, "0"), List.of(1), 10);
        b.stage(1, 2);
        b.taskStarts(1, 11);
        b.taskStarts(1, 12);
        b.taskEnds(1, true);
        b.starts(Board.name(4, "0"), List.of(1, 2), 15);
        b.starts(Board.name(5, null), List.of(9), 16);
        b.stage(2, 1);
        b.taskEnds(1, false);
        b.taskStarts(1, 17);
        String query = "{'id':0,'name':'query-0','queue':0,'tasks':3,'tasks_finished':1,'computing':1,'waiting':0,'arrival_ns':10000000,"
                + "'started_ns':11000000,'finished_ns':null}";
        String job = "{'id':1,'name':'job-5','queue':0,'tasks':0,'tasks_finished':0,'computing':0,'waiting':0,'arrival_ns':16000000,"
                + "'started_ns':null,'finished_ns':null}";
        String all = "{'run':7,'now_ns':18000000,'workload':'" + "x".repeat(80) + "','policy':'Spark, mode place','slots':8,'jobs':[" + query + "," + job + "]}";
        same(tree(b.report(18, 8)), json(all));
        same(b.report(19, 8), null);
        b.ends("query-0", 20);
        JsonNode last = tree(b.report(21, 0));
        same(last.at("/jobs/0/finished_ns").asLong(), 20_000_000L);
        same(last.get("slots").asInt(), 8);
    }

    private static void names() {
        var r = new Coflows.Reading("a".repeat(80), 12, 1, List.of(5), shuffle());
        same(r.name, "stage 12.1 shuffle 5 of " + "a".repeat(40));
        same(new Coflows.Reading("sort", 3, 0, List.of(1, 2), shuffle()).name, "stage 3 shuffle 1+2 of sort");
        same(new Coflows.Reading("union", 9, 0, List.of(0, 1, 2, 3), shuffle()).name, "stage 9 shuffle 0+1+2.. of union");
    }

    private static void addresses() {
        for (String bad : new String[] {"localhost:7447", "https://x:1", "http://x", ""}) {
            refused(() -> new Controller(bad, null, 100, () -> 0), "unix:/path or http://host:port");
        }
    }

    private static void refused(Test test, String why) {
        try {
            test.run();
        } catch (Exception e) {
            if (String.valueOf(e.getMessage()).contains(why)) return;
            throw new AssertionError(e.toString());
        }
        throw new AssertionError("it is taken");
    }

    /** A daemon that answers every request with the same, or with nothing; says how many came. */
    private static final class Daemon implements AutoCloseable {
        final Path socket;
        final AtomicInteger requests = new AtomicInteger();
        volatile String heard = "";
        private final ServerSocketChannel server;

        Daemon(String answer) throws IOException {
            socket = Files.createTempDirectory("heliostat").resolve("api.sock");
            server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
            server.bind(UnixDomainSocketAddress.of(socket));
            Thread t = new Thread(() -> serve(answer));
            t.setDaemon(true);
            t.start();
        }

        private void serve(String answer) {
            try {
                while (true) {
                    SocketChannel c = server.accept();
                    ByteBuffer in = ByteBuffer.allocate(10_000);
                    c.read(in);
                    heard = new String(in.array(), 0, in.position(), StandardCharsets.UTF_8);
                    requests.incrementAndGet();
                    if (answer == null) continue;
                    c.write(ByteBuffer.wrap(answer.getBytes(StandardCharsets.UTF_8)));
                    c.close();
                }
            } catch (IOException e) {
                // It was closed.
            }
        }

        @Override
        public void close() throws IOException {
            server.close();
            Files.delete(socket);
            Files.delete(socket.getParent());
        }
    }

    private static void answers() throws Exception {
        try (Daemon d = new Daemon("HTTP/1.0 200 OK\r\na: b\r\n\r\n{\"id\": 7}")) {
            Controller c = new Controller("unix:" + d.socket, "secret", 5000, () -> 0);
            same(c.call("GET", "/x", null).get("id").asInt(), 7);
            same(d.heard.startsWith("GET /x HTTP/1.0\r\n") && d.heard.contains("authorization: Bearer secret\r\n"), true);
        }
        try (Daemon d = new Daemon("HTTP/1.1 204 No Content\r\n\r\n")) {
            same(new Controller("unix:" + d.socket, null, 5000, () -> 0).call("DELETE", "/x", null), null);
        }
        try (Daemon d = new Daemon("HTTP/1.1 409 Conflict\r\n\r\nbusy")) {
            Controller c = new Controller("unix:" + d.socket, null, 5000, () -> 0);
            for (int i = 0; i < 2; i++) refused(() -> c.call("POST", "/x", Map.of()), "POST /x: 409 busy");
            same(d.requests.get(), 2);
        }
    }

    private static void hangs() throws Exception {
        AtomicLong now = new AtomicLong();
        try (Daemon d = new Daemon(null)) {
            Controller c = new Controller("unix:" + d.socket, null, 50, now::get);
            refused(() -> c.call("GET", "/x", null), "within 50 ms");
            refused(() -> c.call("GET", "/x", null), "lately");
            now.set(Controller.PAUSE_MS);
            refused(() -> c.call("GET", "/x", null), "within 50 ms");
        }
    }

    private static void gone() throws Exception {
        AtomicLong now = new AtomicLong();
        Path socket;
        try (Daemon d = new Daemon("HTTP/1.0 200 OK\r\n\r\n1")) {
            socket = d.socket;
        }
        Controller c = new Controller("unix:" + socket, null, 5000, now::get);
        try {
            c.call("GET", "/x", null);
            throw new AssertionError("it answers");
        } catch (Controller.Gone e) {
            refused(() -> c.call("GET", "/x", null), "lately");
        }
    }
}

/*
 * What the emitter has the JVM do: listen to Spark and Iceberg, keep events in a bounded queue, hold the
 * claim on an application, and write down, in one call each, what an event, a plan or a table says of itself.
 *
 * Compiled in the driver by Janino, the compiler that Spark brings for its own code (`probe.py`). Janino knows
 * neither generics nor lambdas. The classes of Spark and Scala that stand here by their simple names are
 * imported by `class_names.py`; those of table formats are only reached by reflection, for they may be absent.
 *
 * Nothing here may throw on a thread of Spark's: `offer` does nothing but offer.
 */
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Parameter;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

public class Probe extends SparkListener implements InvocationHandler, Runnable {
    static final int MOST = 5000; // elements of the lists in a list
    static final List NONE = Collections.EMPTY_LIST;
    static final Map QUESTIONS = new ConcurrentHashMap(); // by class: names and paths, in turn
    static final Map WANTED = new ConcurrentHashMap(); // by class: its fields that are looked at
    static final Map FIELDS = new ConcurrentHashMap(); // by class: the fields of its constructor
    static final Map METHODS = new ConcurrentHashMap(); // by class and name

    private LinkedBlockingQueue queue;
    private final AtomicLong dropped = new AtomicLong();
    private final Set dull = ConcurrentHashMap.newKeySet(); // classes of events that are not wanted
    private final Set loaders = new HashSet(); // of each Iceberg that is listened to
    private final List registered = new ArrayList(); // the queues of listeners that this is in
    private Object listener; // Iceberg's
    private volatile Object newest; // the event that was taken last

    private Properties properties;
    private String key;
    private String id;
    private long lease; // milliseconds
    private ScheduledExecutorService executor;
    private ScheduledFuture end;
    private Probe watching;
    private SparkContext context;

    // --- Listening ---------------------------------------------------------------------------------------

    /** Make the queue, for so many events. */
    public void open(int capacity) {
        queue = new LinkedBlockingQueue(capacity);
    }

    public void onOtherEvent(SparkListenerEvent event) {
        offer(event);
    }

    public void onApplicationEnd(SparkListenerApplicationEnd event) {
        offer(event);
    }

    /** Put an event into the queue; one that finds it full is counted. */
    public void offer(Object event) {
        if (!dull.contains(event.getClass()) && !queue.offer(event)) {
            dropped.incrementAndGet();
        }
    }

    /** Stand for a listener of Iceberg's. */
    public Object invoke(Object proxy, Method method, Object[] arguments) {
        String name = method.getName();
        if (name.equals("equals")) {
            return Boolean.valueOf(proxy == arguments[0]);
        }
        if (name.equals("hashCode")) {
            return Integer.valueOf(System.identityHashCode(proxy));
        }
        if (name.equals("toString")) {
            return "Strandline's listener";
        }
        offer(arguments[0]);
        return null;
    }

    /**
     * Register with the Iceberg of a loader: false where it has none, or where this was done.
     * Iceberg has no method that removes a listener: its private map is asked for.
     */
    public boolean register(ClassLoader loader, String events, String kinds) {
        Class listeners;
        Class face;
        try {
            listeners = Class.forName(events + "Listeners", true, loader);
            face = Class.forName(events + "Listener", true, loader);
        } catch (ClassNotFoundException absent) {
            return false;
        }
        if (!loaders.add(listeners.getClassLoader())) {
            return false;
        }
        try {
            listener = Proxy.newProxyInstance(face.getClassLoader(), new Class[] {face}, this);
            Method register = listeners.getMethod("register", new Class[] {face, Class.class});
            Map all = mapOfListeners(listeners);
            String[] names = kinds.split(" ");
            for (int i = 0; i < names.length; i++) {
                Class kind = Class.forName(events + names[i], true, loader);
                register.invoke(null, new Object[] {listener, kind});
                if (all != null) {
                    registered.add(new Object[] {all.get(kind), listener});
                }
            }
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
        return true;
    }

    private static Map mapOfListeners(Class listeners) {
        try {
            Field field = listeners.getDeclaredField("LISTENERS");
            field.setAccessible(true);
            return (Map) field.get(null);
        } catch (Exception renamed) {
            return null;
        }
    }

    /** The number of queues of Iceberg's that this is in. */
    public int registrations() {
        return registered.size();
    }

    /** Listen no more. A listener that cannot be removed from Iceberg must not be registered again. */
    public void leave(SparkContext from) {
        try {
            from.removeSparkListener(this);
        } finally {
            if (!registered.isEmpty()) {
                loaders.clear();
            }
            for (int i = 0; i < registered.size(); i++) {
                Object[] pair = (Object[]) registered.get(i);
                ((Collection) pair[0]).remove(pair[1]);
            }
            registered.clear();
        }
    }

    public void ignoreNewest() {
        dull.add(newest.getClass());
    }

    public long dropped() {
        return dropped.get();
    }

    /** End a `take` that waits. */
    public void wake() {
        queue.offer("");
    }

    public Object newest() {
        return newest;
    }

    /** Take the next event, and write down its answers; nothing if none comes in time. */
    public String take(long milliseconds) throws Exception {
        Object event = queue.poll(milliseconds, TimeUnit.MILLISECONDS);
        if (event != null) {
            newest = event;
        }
        return event == null ? null : tell(event);
    }

    // --- The claim on an application ---------------------------------------------------------------------

    /** Take a claim, a property of the JVM, if it is free; it holds until a lease without renewal is over. */
    public boolean claim(String ofApplication, String ofProcess, long milliseconds) {
        properties = System.getProperties();
        key = ofApplication;
        id = ofProcess;
        lease = milliseconds;
        schedule(); // before the claim: one that is never given back would bar every later process
        if (properties.putIfAbsent(key, id) == null) {
            return true;
        }
        end.cancel(false);
        return false;
    }

    private void schedule() {
        if (executor == null) {
            executor = ThreadUtils.newDaemonSingleThreadScheduledExecutor("strandline-lease");
        }
        end = executor.schedule(this, lease, TimeUnit.MILLISECONDS);
    }

    /** Let the lease begin again; false where it is over though nobody gave it back. */
    public boolean renew() {
        if (!end.cancel(false)) {
            return false;
        }
        schedule();
        return id.equals(properties.get(key));
    }

    /** Set what has to leave a context when the lease is over. */
    public void undo(Probe probe, SparkContext of) {
        watching = probe;
        context = of;
    }

    public void giveBack() {
        properties.remove(key, id);
        if (executor != null) {
            executor.shutdownNow();
        }
    }

    /** The end of the lease: the process was killed, or hangs. */
    public void run() {
        properties.remove(key, id);
        if (watching != null) {
            try {
                watching.leave(context);
            } finally {
                watching.queue.clear();
                watching.newest = null;
            }
        }
    }

    // --- Answers -----------------------------------------------------------------------------------------

    /** Learn questions, a line each: a class, a name and a path; or a class and those of its fields that are wanted. */
    public void learn(String lines) {
        Map questions = new LinkedHashMap();
        String[] each = lines.split("\n");
        for (int i = 0; i < each.length; i++) {
            String[] words = each[i].split("\t", -1);
            if (words.length == 3) {
                if (!questions.containsKey(words[0])) {
                    questions.put(words[0], new ArrayList());
                }
                ((List) questions.get(words[0])).addAll(Arrays.asList(new Object[] {words[1], words[2]}));
            } else if (words.length == 2) {
                WANTED.put(words[0], new HashSet(Arrays.asList((Object[]) words[1].split(" "))));
            }
        }
        QUESTIONS.putAll(questions);
    }

    /** The class of an object and its answers to the questions of that class. */
    public String tell(Object asked) throws Exception {
        Text text = new Text();
        text.answers(asked);
        return text.whole();
    }

    /** A plan or an expression as rows; see `plans.tree`. */
    public String tree(Object root) throws Exception {
        Text text = new Text();
        text.tree((TreeNode) root);
        return text.whole();
    }

    /** The answers to paths, one a line. */
    public String ask(Object asked, String paths) throws Exception {
        Text text = new Text();
        String[] each = paths.split("\n");
        for (int i = 0; i < each.length; i++) {
            text.out.append(i == 0 ? "[" : ",");
            text.value(follow(asked, each[i]), NONE);
        }
        text.out.append("]");
        return text.whole();
    }

    public String nameOfClass(Object asked) {
        return asked.getClass().getName();
    }

    /** The scans of a physical plan, with those in subqueries, in stages and in cached relations. */
    public List scans(Object plan) throws Exception {
        List found = new ArrayList();
        ArrayDeque plans = new ArrayDeque();
        plans.add(plan);
        while (!plans.isEmpty()) {
            TreeNode next = (TreeNode) plans.poll();
            plans.addAll(listOf(follow(next, "subqueriesAll")));
            List leaves = listOf(next.collectLeaves());
            for (int i = 0; i < leaves.size(); i++) {
                Object leaf = leaves.get(i);
                if (pathOf(leaf, "scan") != null) {
                    found.add(follow(leaf, pathOf(leaf, "scan")));
                } else if (pathOf(leaf, "inside") != null) {
                    plans.add(follow(leaf, pathOf(leaf, "inside")));
                }
            }
        }
        return found;
    }

    /** The plan that did the work of a write, by the physical plan of its execution. */
    public Object written(Object plan) throws Exception {
        while (pathOf(plan, "written") != null) {
            plan = follow(plan, pathOf(plan, "written"));
        }
        return plan;
    }

    /** What that plan has counted. */
    public String metrics(Object plan) throws Exception {
        Map metrics = JavaConverters.mapAsJavaMap((scala.collection.Map) follow(written(plan), "metrics"));
        Map counts = new LinkedHashMap();
        Iterator entries = metrics.entrySet().iterator();
        while (entries.hasNext()) {
            Map.Entry entry = (Map.Entry) entries.next();
            counts.put(entry.getKey(), follow(entry.getValue(), "value"));
        }
        Text text = new Text();
        text.value(counts, NONE);
        return text.whole();
    }

    private static String pathOf(Object asked, String question) {
        String[] questions = questionsOf(asked.getClass());
        for (int i = 0; i < questions.length; i += 2) {
            if (questions[i].equals(question)) {
                return questions[i + 1];
            }
        }
        return null;
    }

    /** The questions to a class, or else to the class above it. */
    static String[] questionsOf(Class kind) {
        while (kind != null) {
            List questions = (List) QUESTIONS.get(kind.getName());
            if (questions != null) {
                return (String[]) questions.toArray(new String[questions.size()]);
            }
            kind = kind.getSuperclass();
        }
        return new String[0];
    }

    /**
     * Follow a path: methods without arguments, with dots between, and `[key]` for the value of a map; nothing
     * where one gives nothing, or an empty Option. At its end may stand `?Class` for whether it is one, or `|Class.method(Kind)`, a
     * static method that is given it.
     */
    static Object follow(Object from, String path) throws Exception {
        Object value = from;
        int at = 0;
        while (at < path.length() && value != null) {
            char sign = path.charAt(at);
            String rest = path.substring(at + 1);
            if (sign == '?') {
                return Boolean.valueOf(Class.forName(rest, true, loaderOf(from)).isInstance(value));
            }
            if (sign == '|') {
                return given(value, rest, loaderOf(from));
            }
            int stop = at + 1;
            while (stop < path.length() && ".[?|".indexOf(path.charAt(stop)) < 0) {
                stop++;
            }
            if (sign == '[') {
                stop = path.indexOf(']', at) + 1;
                Map map = JavaConverters.mapAsJavaMap((scala.collection.Map) value);
                value = map.get(path.substring(at + 1, stop - 1));
            } else {
                String name = path.substring(sign == '.' ? at + 1 : at, stop);
                value = method(value.getClass(), name).invoke(value, new Object[0]);
            }
            value = heldBy(value);
            at = stop;
        }
        return value;
    }

    /** What an Option holds; any other object itself. */
    static Object heldBy(Object value) {
        if (value instanceof Option) {
            return ((Option) value).isDefined() ? ((Option) value).get() : null;
        }
        return value;
    }

    private static ClassLoader loaderOf(Object asked) {
        return asked.getClass().getClassLoader();
    }

    /** The answer of a static method, `Class.method(Kind)`. */
    private static Object given(Object value, String method, ClassLoader loader) throws Exception {
        int bracket = method.indexOf('(');
        int dot = method.lastIndexOf('.', bracket);
        Class kind = Class.forName(method.substring(bracket + 1, method.length() - 1), true, loader);
        Class owner = Class.forName(method.substring(0, dot), true, loader);
        Method called = owner.getMethod(method.substring(dot + 1, bracket), new Class[] {kind});
        return called.invoke(null, new Object[] {value});
    }

    /** A public method of an object's class; it is opened where the class is not public. */
    private static Method method(Class kind, String name) throws Exception {
        String place = kind.getName() + " " + System.identityHashCode(kind) + " " + name;
        Method known = (Method) METHODS.get(place);
        if (known == null) {
            boolean isOfAny = name.equals("getClass") || name.equals("toString");
            known = (isOfAny ? Object.class : kind).getMethod(name, new Class[0]);
            if (!Modifier.isPublic(known.getDeclaringClass().getModifiers())) {
                known.setAccessible(true);
            }
            METHODS.put(place, known);
        }
        return known;
    }

    /** The fields in which an object keeps what it was made of, in the order of its constructor. */
    static Field[] fieldsOf(Object product, int count) throws Exception {
        Class kind = product.getClass();
        Field[] known = (Field[]) FIELDS.get(kind);
        if (known != null) {
            return known;
        }
        Set wanted = (Set) WANTED.get(kind.getName());
        List found = new ArrayList();
        Constructor[] makers = kind.getDeclaredConstructors();
        for (int i = 0; i < makers.length && count > 0 && found.isEmpty(); i++) {
            Parameter[] parameters = makers[i].getParameters();
            for (int j = 0; parameters.length == count && j < count; j++) {
                Field field = field(kind, parameters[j].getName());
                if (field != null) {
                    found.add(field);
                }
            }
        }
        if (count > 0 && found.isEmpty()) {
            throw new IllegalStateException(kind.getName() + " does not name its fields");
        }
        for (int i = found.size() - 1; wanted != null && i >= 0; i--) {
            if (!wanted.contains(((Field) found.get(i)).getName())) {
                found.remove(i);
            }
        }
        known = (Field[]) found.toArray(new Field[found.size()]);
        FIELDS.put(kind, known);
        return known;
    }

    private static Field field(Class kind, String name) {
        while (kind != null) {
            try {
                Field field = kind.getDeclaredField(name);
                field.setAccessible(true);
                return field;
            } catch (NoSuchFieldException elsewhere) {
                kind = kind.getSuperclass();
            }
        }
        return null;
    }

    static List listOf(Object sequence) {
        return new ArrayList(JavaConverters.seqAsJavaList((Seq) sequence));
    }

    /**
     * JSON, with two forms of its own: `{"$type": text}` is Spark's JSON of a type, and `{"$tree": rows}` a plan or
     * expression in pre-order, a row a node: the number of its class in the first line, the number of its children,
     * its values. The first line names each class and its values.
     */
    static class Text {
        final StringBuilder out = new StringBuilder();
        private final StringBuilder shapes = new StringBuilder("[");
        private final Map numbers = new LinkedHashMap(); // by class

        String whole() {
            return shapes + "]\n" + out;
        }

        void answers(Object asked) throws Exception {
            out.append("{\"class\":");
            text(asked.getClass().getName());
            String[] questions = questionsOf(asked.getClass());
            for (int i = 0; i < questions.length; i += 2) {
                int before = out.length();
                try {
                    out.append(",");
                    text(questions[i]);
                    out.append(":");
                    answer(asked, questions[i + 1]);
                } catch (Throwable unknown) { // a method that this version has not, an object that is not there
                    out.setLength(before);
                }
            }
            out.append("}");
        }

        /** The answer of a path; behind a `>` stand the answers of the object there. */
        private void answer(Object asked, String path) throws Exception {
            if (path.charAt(0) == '>') {
                answers(follow(asked, path.substring(1)));
            } else {
                value(follow(asked, path), NONE);
            }
        }

        void tree(TreeNode root) throws Exception {
            ArrayDeque waiting = new ArrayDeque();
            waiting.push(root);
            out.append("{\"$tree\":");
            String before = "[";
            while (!waiting.isEmpty()) {
                TreeNode node = (TreeNode) waiting.pop();
                List children = listOf(node.children());
                out.append(before);
                row(node, children);
                before = ",";
                for (int i = children.size() - 1; i >= 0; i--) {
                    waiting.push(children.get(i));
                }
            }
            out.append("]}");
        }

        private void row(TreeNode node, List children) throws Exception {
            Object product = node;
            int count = ((Product) product).productArity() + listOf(node.otherCopyArgs()).size();
            Field[] fields = fieldsOf(node, count);
            String[] questions = questionsOf(node.getClass());
            out.append("[").append(number(node, fields, questions)).append(",").append(children.size());
            for (int i = 0; i < fields.length; i++) {
                out.append(",");
                value(fields[i].get(node), children);
            }
            if (node instanceof Literal) {
                out.append(",");
                literal((Literal) node);
            } else if (node instanceof Cast) {
                out.append(",").append(node.getTagValue(Cast.USER_SPECIFIED_CAST()).isDefined());
            }
            for (int i = 0; i < questions.length; i += 2) {
                int before = out.length();
                try {
                    out.append(",");
                    answer(node, questions[i + 1]);
                } catch (Throwable unknown) {
                    out.setLength(before);
                    out.append(",null");
                }
            }
            out.append("]");
        }

        private int number(TreeNode node, Field[] fields, String[] questions) {
            Object known = numbers.get(node.getClass());
            if (known != null) {
                return ((Integer) known).intValue();
            }
            shapes.append(numbers.isEmpty() ? "[" : ",[");
            text(node.getClass().getName(), shapes);
            for (int i = 0; i < fields.length; i++) {
                shapes.append(",");
                text(fields[i].getName(), shapes);
            }
            shapes.append(node instanceof Literal ? ",\"value\"" : node instanceof Cast ? ",\"written\"" : "");
            for (int i = 0; i < questions.length; i += 2) {
                shapes.append(",");
                text(questions[i], shapes);
            }
            shapes.append("]");
            numbers.put(node.getClass(), Integer.valueOf(numbers.size()));
            return numbers.size() - 1;
        }

        private void literal(Literal node) {
            Object value = node.value();
            boolean isMoment = value instanceof Number && node.dataType() instanceof DatetimeType;
            if (value == null) {
                out.append("null");
            } else {
                text(isMoment ? node.toString() : value.toString());
            }
        }

        /** A value; null for one of which nothing is to be said. `children` are those of the node that has it. */
        void value(Object held, List children) throws Exception {
            Object value = heldBy(held);
            if (value instanceof TreeNode) {
                node(value, children);
            } else if (value instanceof DataType) {
                out.append("{\"$type\":");
                text(((DataType) value).json());
                out.append("}");
            } else if (value instanceof Seq) {
                list(listOf(value), children);
            } else if (value instanceof Object[]) {
                list(Arrays.asList((Object[]) value), children);
            } else if (value instanceof Map) {
                map((Map) value);
            } else if (value instanceof ExprId) {
                out.append(((ExprId) value).id());
            } else if (value instanceof Metadata) {
                Metadata marks = (Metadata) value;
                out.append(marks.contains("__metadata_col") || marks.contains("__file_source_metadata_col"));
            } else if (value instanceof Boolean || value instanceof Long || value instanceof Integer) {
                out.append(value);
            } else if (isText(value)) {
                text(value.toString());
            } else if (value != null && value.getClass().getName().endsWith("$")) {
                text(value.getClass().getName());
            } else if (isParts(value)) {
                parts((Product) value, children);
            } else {
                out.append("null");
            }
        }

        private static boolean isText(Object value) {
            return value instanceof CharSequence || value instanceof Enum || value instanceof UUID || value instanceof Class
                || value instanceof Enumeration.Value || value instanceof URI;
        }

        private static boolean isParts(Object value) {
            return value instanceof JoinType || value instanceof AliasIdentifier || value instanceof StructField
                || value != null && value.getClass().getName().startsWith("scala.Tuple");
        }

        private void node(Object node, List children) throws Exception {
            int place = placeIn(children, node);
            if (place >= 0) {
                out.append(place);
            } else if (node instanceof SparkPlan) {
                out.append("null");
            } else {
                tree((TreeNode) node);
            }
        }

        private static int placeIn(List children, Object node) {
            for (int i = 0; i < children.size(); i++) {
                if (children.get(i) == node) {
                    return i;
                }
            }
            return -1;
        }

        /** A list; null for the node's own children, for what is no value, and where there is too much of it. */
        private void list(List values, List children) throws Exception {
            Object first = values.isEmpty() ? null : values.get(0);
            boolean isLong = first instanceof Seq && values.size() * listOf(first).size() > MOST;
            if (isLong || first != null && placeIn(children, first) >= 0) {
                out.append("null");
                return;
            }
            int before = out.length();
            for (int i = 0; i < values.size(); i++) {
                out.append(i == 0 ? "[" : ",");
                value(values.get(i), children);
                if (i == 0 && first != null && !(first instanceof Option) && out.length() == before + 5
                    && out.substring(before).equals("[null")) {
                    out.setLength(before);
                    out.append("null");
                    return;
                }
            }
            out.append(values.isEmpty() ? "[]" : "]");
        }

        private void map(Map values) throws Exception {
            Iterator entries = values.entrySet().iterator();
            String before = "{";
            while (entries.hasNext()) {
                Map.Entry entry = (Map.Entry) entries.next();
                out.append(before);
                text(String.valueOf(entry.getKey()));
                out.append(":");
                value(entry.getValue(), NONE);
                before = ",";
            }
            out.append(values.isEmpty() ? "{}" : "}");
        }

        private void parts(Product product, List children) throws Exception {
            boolean isTuple = product.getClass().getName().startsWith("scala.Tuple");
            Field[] fields = isTuple ? null : fieldsOf(product, product.productArity());
            for (int i = 0; i < product.productArity(); i++) {
                out.append(i == 0 ? "{" : ",");
                text(isTuple ? "_" + (i + 1) : fields[i].getName());
                out.append(":");
                value(product.productElement(i), children);
            }
            out.append(product.productArity() == 0 ? "{}" : "}");
        }

        private void text(String value) {
            text(value, out);
        }

        private static void text(String value, StringBuilder into) {
            into.append('"');
            for (int i = 0; i < value.length(); i++) {
                char c = value.charAt(i);
                if (c == '"' || c == '\\') {
                    into.append('\\').append(c);
                } else if (c < ' ') {
                    into.append("\\u00").append(Character.forDigit(c >> 4, 16)).append(Character.forDigit(c & 15, 16));
                } else {
                    into.append(c);
                }
            }
            into.append('"');
        }
    }
}

/*
 * What the emitter has the JVM do: listen to Spark and Iceberg, keep events in a bounded queue, hold the claim
 * on an application, and write down, in one call each, what an event, a plan or a table says of itself.
 *
 * Compiled in the driver by Janino, the compiler that Spark brings for its own code (`probe.py`). Janino knows
 * neither generics nor lambdas. Classes of Spark, Scala and Jackson stand here by their simple names, which
 * `class_names.py` imports; those of table formats are reached by reflection, for they may be absent.
 */
import java.lang.reflect.*;
import java.net.URI;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicLong;

public class Probe extends SparkListener implements InvocationHandler, Runnable {
    static final int MOST = 5000; // elements of the lists in a list
    static final List NONE = Collections.emptyList();
    static final Map QUESTIONS = new ConcurrentHashMap(); // by class: paths by the names of the questions
    static final Map WANTED = new ConcurrentHashMap(); // by class: those of its fields that are looked at
    static final Map FIELDS = new ConcurrentHashMap(); // by class: the fields of its constructor
    static final Map METHODS = new ConcurrentHashMap(); // by class: methods by their names
    static final ObjectMapper MAPPER = new ObjectMapper();

    private LinkedBlockingQueue queue;
    private final AtomicLong dropped = new AtomicLong();
    private final Set loaders = new HashSet(); // of each Iceberg that is listened to
    private final List registered = new ArrayList(); // pairs: a queue of Iceberg's, the listener in it
    private volatile Object newest; // the event that was taken last

    private final Properties properties = System.getProperties();
    private String key; // of the claim; a process's own id is its value
    private String id;
    private long lease; // milliseconds
    private ScheduledExecutorService executor;
    private ScheduledFuture end;
    private Probe watching; // what leaves a context at the end of the lease
    private SparkContext watched;

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

    /**
     * Put an event into the queue, if anything is asked of its class; one that finds it full is counted.
     * This is done on Spark's own threads: it must not throw.
     */
    public void offer(Object event) {
        if (QUESTIONS.containsKey(event.getClass().getName()) && !queue.offer(event)) {
            dropped.incrementAndGet();
        }
    }

    /** Stand for a listener of Iceberg's. */
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Exception {
        if (method.getName().equals("equals")) {
            return Boolean.valueOf(proxy == arguments[0]);
        }
        if (method.getDeclaringClass() == Object.class) {
            return method.invoke(this, arguments);
        }
        offer(arguments[0]);
        return null;
    }

    /** Register with the Iceberg of a loader: false where it has none, or where this was done. */
    public boolean register(ClassLoader loader, String events, String kinds) throws Exception {
        Class listeners;
        try {
            listeners = Class.forName(events + "Listeners", true, loader);
        } catch (ClassNotFoundException absent) {
            return false;
        }
        if (!loaders.add(listeners.getClassLoader())) {
            return false;
        }
        Class face = Class.forName(events + "Listener", true, loader);
        Object listener = Proxy.newProxyInstance(face.getClassLoader(), new Class[] {face}, this);
        Method register = listeners.getMethod("register", new Class[] {face, Class.class});
        String[] names = kinds.split(" ");
        for (int i = 0; i < names.length; i++) {
            Class kind = Class.forName(events + names[i], true, loader);
            register.invoke(null, new Object[] {listener, kind});
            // no method of Iceberg's removes a listener; where its private map cannot be had this one stays
            Field all = field(listeners, "LISTENERS");
            if (all != null) {
                registered.add(new Object[] {((Map) all.get(null)).get(kind), listener});
            }
        }
        return true;
    }

    /** Listen no more. A listener that cannot be removed from Iceberg must not be registered again. */
    public void leave(SparkContext context) {
        try {
            context.removeSparkListener(this);
        } finally {
            for (int i = 0; i < registered.size(); i++) {
                Object[] pair = (Object[]) registered.get(i);
                ((Collection) pair[0]).remove(pair[1]);
            }
            if (!registered.isEmpty()) {
                loaders.clear();
            }
            registered.clear();
        }
    }

    /** Take the next event, and write down its answers; nothing if none comes in time. */
    public String take(long milliseconds) throws Exception {
        Object event = queue.poll(milliseconds, TimeUnit.MILLISECONDS);
        if (event == null) {
            return null;
        }
        newest = event;
        return tell(event);
    }

    /** End a `take` that waits. */
    public void wake() {
        queue.offer("");
    }

    public Object newest() {
        return newest;
    }

    public long dropped() {
        return dropped.get();
    }

    /** Take a claim, a property of the JVM, if it is free; it holds until a lease without renewal is over. */
    public boolean claim(String ofApplication, String ofProcess, long milliseconds) {
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
    public void undo(Probe probe, SparkContext context) {
        watching = probe;
        watched = context;
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
                watching.leave(watched);
            } finally {
                watching.queue.clear();
                watching.newest = null;
            }
        }
    }

    /** Learn questions, a line each: a class, a name and a path; or a class and those of its fields that are wanted. */
    public void learn(String lines) {
        Map questions = new HashMap();
        String[] each = lines.split("\n");
        for (int i = 0; i < each.length; i++) {
            String[] words = each[i].split("\t", -1);
            if (words.length == 2) {
                WANTED.put(words[0], new HashSet(Arrays.asList((Object[]) words[1].split(" "))));
            } else {
                if (!questions.containsKey(words[0])) {
                    questions.put(words[0], new LinkedHashMap());
                }
                ((Map) questions.get(words[0])).put(words[1], words[2]);
            }
        }
        QUESTIONS.putAll(questions);
    }

    /** The class of an object and its answers to the questions of that class. */
    public String tell(Object asked) throws Exception {
        Answers answers = new Answers();
        return answers.written(answers.of(asked));
    }

    /** A plan or an expression. */
    public String tree(Object root) throws Exception {
        Answers answers = new Answers();
        return answers.written(answers.tree((TreeNode) root));
    }

    /** The answers to paths, one a line. */
    public String ask(Object asked, String paths) throws Exception {
        Answers answers = new Answers();
        List found = new ArrayList();
        String[] each = paths.split("\n", -1);
        for (int i = 0; i < each.length; i++) {
            found.add(answers.value(follow(asked, each[i]), NONE));
        }
        return answers.written(found);
    }

    /** Those lines, a class and a field of it each, whose class is here without the field. */
    public String lacking(String lines) throws Exception {
        List lacking = new ArrayList();
        String[] each = lines.split("\n");
        for (int i = 0; i < each.length; i++) {
            String[] words = each[i].split(" ");
            try {
                ClassLoader loader = Thread.currentThread().getContextClassLoader();
                if (field(Class.forName(words[0], false, loader), words[1]) == null) {
                    lacking.add(each[i]);
                }
            } catch (Throwable absent) { // a class that is not here does no harm
                continue;
            }
        }
        return new Answers().written(lacking);
    }

    /** The scans of a physical plan, with those in subqueries, in stages and in cached relations. */
    public Object[] scans(Object plan) throws Exception {
        List found = new ArrayList();
        ArrayDeque plans = new ArrayDeque(Collections.singletonList(plan));
        while (!plans.isEmpty()) {
            Object next = plans.poll();
            plans.addAll(listOf(follow(next, "subqueriesAll")));
            List leaves = listOf(follow(next, "collectLeaves"));
            for (int i = 0; i < leaves.size(); i++) {
                Map questions = questionsTo(leaves.get(i));
                if (questions.containsKey("scan")) {
                    found.add(follow(leaves.get(i), (String) questions.get("scan")));
                } else if (questions.containsKey("inside")) {
                    plans.add(follow(leaves.get(i), (String) questions.get("inside")));
                }
            }
        }
        return found.toArray();
    }

    /** The plan that did the work of a write, by the physical plan of its execution. */
    public Object written(Object plan) throws Exception {
        Object written = plan;
        while (questionsTo(written).containsKey("written")) {
            written = follow(written, (String) questionsTo(written).get("written"));
        }
        return written;
    }

    /** What that plan has counted. */
    public String metrics(Object plan) throws Exception {
        Map counts = new HashMap(JavaConverters.mapAsJavaMap((scala.collection.Map) follow(written(plan), "metrics")));
        Object[] names = counts.keySet().toArray();
        for (int i = 0; i < names.length; i++) {
            counts.put(names[i], follow(counts.get(names[i]), "value"));
        }
        return new Answers().written(counts);
    }

    /** The questions to an object's class, or else to the class above it. */
    static Map questionsTo(Object asked) {
        Class kind = asked.getClass();
        while (kind != null && !QUESTIONS.containsKey(kind.getName())) {
            kind = kind.getSuperclass();
        }
        return kind == null ? Collections.EMPTY_MAP : (Map) QUESTIONS.get(kind.getName());
    }

    /**
     * Follow a path: methods without arguments, with dots between, and `[key]` for the value of a map; nothing
     * where one gives nothing, or an empty Option. At its end may stand `?Class` for whether it is one.
     */
    static Object follow(Object from, String path) throws Exception {
        Object value = from;
        int at = 0;
        while (at < path.length() && value != null) {
            char sign = path.charAt(at);
            if (sign == '?') {
                ClassLoader loader = from.getClass().getClassLoader();
                return Boolean.valueOf(Class.forName(path.substring(at + 1), true, loader).isInstance(value));
            }
            int stop = at + 1;
            while (stop < path.length() && ".[?".indexOf(path.charAt(stop)) < 0) {
                stop++;
            }
            if (sign == '[') {
                stop = path.indexOf(']', at) + 1;
                Map map = JavaConverters.mapAsJavaMap((scala.collection.Map) value);
                value = map.get(path.substring(at + 1, stop - 1));
            } else {
                value = method(value, path.substring(sign == '.' ? at + 1 : at, stop)).invoke(value, new Object[0]);
            }
            value = heldBy(value);
            at = stop;
        }
        return value;
    }

    /** A public method of an object; it is opened where its class is not public. */
    private static Method method(Object owner, String name) throws Exception {
        Map known = (Map) METHODS.get(owner.getClass());
        if (known == null) {
            known = new ConcurrentHashMap();
            METHODS.put(owner.getClass(), known);
        }
        if (!known.containsKey(name)) {
            boolean isOfAny = name.equals("getClass") || name.equals("toString");
            Method method = (isOfAny ? Object.class : owner.getClass()).getMethod(name, new Class[0]);
            if (!Modifier.isPublic(method.getDeclaringClass().getModifiers())) {
                method.setAccessible(true);
            }
            known.put(name, method);
        }
        return (Method) known.get(name);
    }

    /** The fields in which an object keeps what it was made of, in the order of its constructor. */
    static List fieldsOf(Object product, int count) {
        Class kind = product.getClass();
        if (FIELDS.containsKey(kind)) {
            return (List) FIELDS.get(kind);
        }
        Set wanted = (Set) WANTED.get(kind.getName());
        List fields = new ArrayList();
        Constructor[] makers = kind.getDeclaredConstructors();
        boolean isNamed = count == 0;
        for (int i = 0; i < makers.length && !isNamed; i++) {
            Parameter[] parameters = makers[i].getParameters();
            for (int j = 0; parameters.length == count && j < count; j++) {
                Field field = field(kind, parameters[j].getName());
                isNamed = isNamed || field != null;
                if (field != null && (wanted == null || wanted.contains(field.getName()))) {
                    fields.add(field);
                }
            }
        }
        if (!isNamed) {
            throw new IllegalStateException(kind.getName() + " does not name its fields");
        }
        FIELDS.put(kind, fields);
        return fields;
    }

    private static Field field(Class owner, String name) {
        for (Class kind = owner; kind != null; kind = kind.getSuperclass()) {
            try {
                Field field = kind.getDeclaredField(name);
                field.setAccessible(true);
                return field;
            } catch (Exception elsewhere) {
                continue;
            }
        }
        return null;
    }

    static List listOf(Object sequence) {
        return new ArrayList(JavaConverters.seqAsJavaList((Seq) sequence));
    }

    /** What an Option holds; any other object itself. */
    static Object heldBy(Object value) {
        if (value instanceof Option) {
            return ((Option) value).isDefined() ? ((Option) value).get() : null;
        }
        return value;
    }

    /**
     * Answers as JSON, with two forms of its own: `{"$type": text}` is Spark's JSON of a type, and `{"$tree": rows}` a
     * plan or expression in pre-order, a row a node: the number of its class in the first line, the number of its
     * children, its values. The first line names each class and its values.
     */
    static class Answers {
        private final Map shapes = new LinkedHashMap(); // by class: its number, its name, the names of its values

        String written(Object answer) throws Exception {
            return MAPPER.writeValueAsString(shapes.values()) + "\n" + MAPPER.writeValueAsString(answer);
        }

        Map of(Object asked) {
            Map answers = new LinkedHashMap();
            answers.put("class", asked.getClass().getName());
            Map paths = questionsTo(asked);
            Object[] questions = paths.keySet().toArray();
            for (int i = 0; i < questions.length; i++) {
                try {
                    answers.put(questions[i], answer(asked, (String) paths.get(questions[i])));
                } catch (Throwable unknown) { // a method that this version has not, an object that is not there
                    continue;
                }
            }
            return answers;
        }

        /** The answer of a path; behind a `>` stand the answers of the object there. */
        private Object answer(Object asked, String path) throws Exception {
            if (!path.startsWith(">")) {
                return value(follow(asked, path), NONE);
            }
            Object there = follow(asked, path.substring(1));
            return there == null ? null : of(there);
        }

        Map tree(TreeNode root) throws Exception {
            List rows = new ArrayList();
            ArrayDeque waiting = new ArrayDeque(Collections.singletonList(root));
            while (!waiting.isEmpty()) {
                TreeNode node = (TreeNode) waiting.pop();
                List children = listOf(node.children());
                rows.add(row(node, children));
                for (int i = children.size() - 1; i >= 0; i--) {
                    waiting.push(children.get(i));
                }
            }
            return Collections.singletonMap("$tree", rows);
        }

        private List row(TreeNode node, List children) throws Exception {
            Object product = node;
            List fields = fieldsOf(node, ((Product) product).productArity() + listOf(node.otherCopyArgs()).size());
            Map values = new LinkedHashMap();
            for (int i = 0; i < fields.size(); i++) {
                Field field = (Field) fields.get(i);
                values.put(field.getName(), value(field.get(node), children));
            }
            if (node instanceof Literal) {
                values.put("value", literal((Literal) node));
            } else if (node instanceof Cast) {
                values.put("written", Boolean.valueOf(node.getTagValue(Cast.USER_SPECIFIED_CAST()).isDefined()));
            }
            Object[] questions = questionsTo(node).keySet().toArray();
            Map answers = questions.length == 0 ? null : of(node);
            for (int i = 0; i < questions.length; i++) {
                values.put(questions[i], answers.get(questions[i]));
            }
            List row = new ArrayList(values.values());
            row.add(0, Integer.valueOf(children.size()));
            row.add(0, numberOf(node.getClass(), values.keySet()));
            return row;
        }

        private Object numberOf(Class kind, Set names) {
            if (!shapes.containsKey(kind)) {
                List shape = new ArrayList(names);
                shape.add(0, kind.getName());
                shape.add(0, Integer.valueOf(shapes.size()));
                shapes.put(kind, shape);
            }
            return ((List) shapes.get(kind)).get(0);
        }

        private static String literal(Literal node) {
            Object value = node.value();
            boolean isMoment = value instanceof Number && node.dataType() instanceof DatetimeType;
            return value == null ? null : isMoment ? node.toString() : value.toString();
        }

        /** A value as JSON can have it; nothing for what is none. `children` are those of the node that has it. */
        Object value(Object held, List children) throws Exception {
            Object value = heldBy(held);
            if (value instanceof TreeNode) {
                Integer place = placeIn(children, value);
                return place != null ? place : value instanceof SparkPlan ? null : (Object) tree((TreeNode) value);
            }
            if (value instanceof DataType) {
                return Collections.singletonMap("$type", ((DataType) value).json());
            }
            if (value instanceof Seq) {
                return list(listOf(value), children);
            }
            if (value instanceof Object[]) {
                return list(Arrays.asList((Object[]) value), children);
            }
            if (value instanceof ExprId) {
                return Long.valueOf(((ExprId) value).id());
            }
            if (value instanceof Metadata) { // whether Spark has marked a column as one that the source adds
                Metadata marks = (Metadata) value;
                boolean isAdded = marks.contains("__metadata_col") || marks.contains("__file_source_metadata_col");
                return Boolean.valueOf(isAdded);
            }
            if (value instanceof Map) {
                return map((Map) value);
            }
            if (value instanceof Boolean || value instanceof Long || value instanceof Integer) {
                return value;
            }
            if (value instanceof CharSequence || value instanceof Enum || value instanceof Enumeration.Value
                || value instanceof UUID || value instanceof URI) {
                return value.toString();
            }
            String name = value == null ? "" : value.getClass().getName();
            if (name.endsWith("$")) { // an object of Scala's
                return name;
            }
            if (value instanceof JoinType || value instanceof AliasIdentifier || value instanceof StructField) {
                return parts((Product) value, fieldsOf(value, ((Product) value).productArity()), children);
            }
            return name.startsWith("scala.Tuple") ? parts((Product) value, null, children) : null;
        }

        private static Integer placeIn(List children, Object node) {
            for (int i = 0; i < children.size(); i++) {
                if (children.get(i) == node) {
                    return Integer.valueOf(i);
                }
            }
            return null;
        }

        /** A list; nothing for the node's own children, for what are no values, and where there is too much of it. */
        private List list(List values, List children) throws Exception {
            Object first = values.isEmpty() ? null : heldBy(values.get(0));
            boolean isLong = first instanceof Seq && (long) values.size() * listOf(first).size() > MOST;
            if (isLong || placeIn(children, first) != null || first != null && value(first, children) == null) {
                return null;
            }
            List list = new ArrayList();
            for (int i = 0; i < values.size(); i++) {
                list.add(value(values.get(i), children));
            }
            return list;
        }

        private Map map(Map values) throws Exception {
            Map map = new LinkedHashMap();
            Object[] names = values.keySet().toArray();
            for (int i = 0; i < names.length; i++) {
                map.put(names[i].toString(), value(values.get(names[i]), NONE));
            }
            return map;
        }

        /** The parts of a product, by their names or, as those of a tuple, by their numbers. */
        private Map parts(Product product, List fields, List children) throws Exception {
            Map parts = new LinkedHashMap();
            for (int i = 0; i < product.productArity(); i++) {
                String name = fields == null ? "_" + (i + 1) : ((Field) fields.get(i)).getName();
                parts.put(name, value(product.productElement(i), children));
            }
            return parts;
        }
    }
}

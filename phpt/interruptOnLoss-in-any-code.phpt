--TEST--
interruptOnLoss: a loss between a call and the passing of its result is thrown at once, in any form of code, without a crash
--EXTENSIONS--
nrllm_runtime
pcntl
--INI--
report_memleaks=0
--FILE--
<?php
declare(strict_types=1);
require __DIR__ . '/inc/keeper.inc';
/**
 * Calls of every kind, for the shapes below. What is allocated is only ever passed on: see
 * interruptOnLoss-throws-on-return-from-a-call.
 */
final class Box
{
    public ?Box $next = null;
    public function __construct(public mixed $value = null)
    {
    }
    public static function of(mixed $value): int
    {
        return is_array($value) ? count($value) : strlen((string) $value);
    }
    public function with(mixed ...$values): int
    {
        return count($values);
    }
    public function __call(string $name, array $arguments): int
    {
        return count($arguments);
    }
    public static function __callStatic(string $name, array $arguments): int
    {
        return count($arguments);
    }
    public function __invoke(mixed $value): int
    {
        return self::of($value);
    }
    public function __toString(): string
    {
        return number_format(strlen(str_repeat('x', 100)));
    }
}
function user(mixed ...$values): int
{
    return count($values);
}
function by_reference(array &$list, int $more): int
{
    return $more;
}
function numbers(int $n): iterable
{
    for ($i = 0; $i < $n; $i++) {
        yield user(str_repeat('g', 50));
    }
}
$shapes = [
    'nested' => 'strlen(strrev(str_repeat("ab", 50)));',
    'deeply nested' => 'number_format(array_sum(array_map("abs", array_slice(range(1, 60), 5))), 2, ",", strtolower(trim(" ,;")));',
    'user function' => 'user(str_repeat("a", 50), str_repeat("b", 50), [1, str_repeat("c", 50)]);',
    'rope' => '$k = strlen("<{$n}-{$box}-{$n}>");',
    'new' => 'user(new Box(str_repeat("a", 50)), new ArrayObject(str_split(str_repeat("b", 50))));',
    'named arguments' => 'strlen(string: str_pad(string: str_repeat("a", 50), length: user(b: str_repeat("b", 50), a: 60), pad_string: strrev(strrev("xyz"))));',
    'variadic and spread' => 'user(...str_split(str_repeat("a", 50)), ...[str_repeat("b", 50)]); $box->with(str_repeat("c", 50), ...array_fill(0, 9, str_repeat("d", 50)));',
    'references' => 'preg_match(strtolower("/X+/"), str_repeat("x", 50), $found); by_reference($found, strlen(str_repeat("a", 50)));',
    'nullsafe' => 'user($box?->next?->with(str_repeat("a", 50)), $box?->with(str_repeat("b", 50), strrev(str_repeat("c", 50))));',
    'closure' => '(static fn (string $x): int => strlen($x))(strrev(str_repeat("a", 50))); $closure(strrev(str_repeat("b", 50)), str_repeat("c", 50));',
    'first-class callable' => 'array_map(strlen(...), str_split(str_repeat("a", 50), user(str_repeat("b", 50)) + 6));',
    'static call' => 'Box::of(str_split(str_repeat("a", 50), Box::of(str_repeat("b", 7))));',
    '__call and __invoke' => '$box->anything(str_repeat("a", 50), strrev(str_repeat("b", 50))); $box(array_fill(0, 20, str_repeat("c", 50)));',
    // A comparison of long strings takes nearly all of the time and does not check for interrupts:
    // the point after it is the one that is interrupted.
    '__call' => '$long ??= [str_repeat("a", 1000000), str_repeat("a", 1000000)]; $box->anything($long[0] === $long[1], "$n a", [$n, "$n b"]);',
    '__callStatic' => '$long ??= [str_repeat("a", 1000000), str_repeat("a", 1000000)]; user(Box::anything("$n a", $long[0] === $long[1]), "$n b");',
    '__call with names' => '$long ??= [str_repeat("a", 1000000), str_repeat("a", 1000000)]; $box->anything("$n a", same: $long[0] === $long[1], list: [$n, "$n b"]);',
    '__call by call_user_func' => '$long ??= [str_repeat("a", 1000000), str_repeat("a", 1000000)]; $k = $long[0] === $long[1]; call_user_func([$box, "anything"], "$n a", [$k]);',
    '__invoke of a closure' => '$long ??= [str_repeat("a", 1000000), str_repeat("a", 1000000)]; $slow ??= static fn (array $x): bool => $x[0] === $x[1]; $slow->__invoke($long);',
    '__invoke of a function' => '$reverse ??= strrev(...); user($reverse(str_repeat("a", 1000)), $reverse->__invoke(str_repeat("b", 1000)));',
    'without a frame' => '$k = str_replace("x", "y", str_repeat("x", 50));',
    'without a frame, other arguments' => '$k = trim(str_repeat(" ", 3000)); $k = in_array("b", str_split(str_repeat("a", 300))); $k = implode(str_repeat(",", 50), [1, 2, 3, 4]);',
    'without a frame in arguments' => 'user("$n a", str_replace($n % 2 ? "a" : strrev("bc"), "$n b", $box->next ?? str_repeat("a", 50)), implode("$n", ["$n c", strrev("$n d")]));',
    'rope of native calls' => '$list ??= new ArrayObject(range(1, 12)); $k = strlen("<{$list->count()}-{$list->count()}-{$list->count()}>");',
    'rope of jumps' => '$box->value = 1000 + $n; $other = $n++ % 2 ? null : $box; $k = strlen("<{$other?->value}-{$other?->value}-{$other?->value}>");',
    'array' => '$list = ["$n a", $box->next?->value, strrev("$n b"), ...[$n++ % 2 ? "$n c" : strrev("$n d")], "key $n" => $box?->with("$n e")];',
    'list' => '[$a, [$b, $c]] = ["$n a", [strrev("$n b"), $n++ % 2 ? "$n c" : strrev("$n d")]];',
    'silence' => '@user(@strrev("$n a"), @$box->next?->value, @$undefined["$n b"]);',
    'foreach' => 'foreach (str_split("$n abc") as &$x) { foreach ([$x, "$n a"] as $y) { user("$n$x", strrev("$y")); if ($n++ % 5) { continue 2; } } }',
    'return out of foreach' => '(static function (int $n): string { foreach ([["$n a"], ["$n b"]] as $row) { foreach ($row as $x) { try { return strrev("$x c"); } finally { user("$n d"); } } } })($n);',
    'generators' => '$g = (static function () use ($n) { $x = yield "$n a"; user($x, yield from (static function () use ($n) { return strrev(yield "$n c"); })()); })(); '
        . '$g->current(); $g->send("$n d"); $g->send("$n e");',
    '__toString' => 'strlen(strrev((string) $box)); user(str_repeat("a", 50), "$box", str_replace("x", "y", str_repeat("x", 50)));',
    'ternary and coalesce' => 'user(str_repeat("a", 50), $n++ % 2 ? str_repeat("b", 50) : strrev("cd"), $box->next ?? strrev(str_repeat("e", 50)), $n ?: 1);',
    'short circuit' => 'user(str_repeat("a", 50), $n++ % 2 && strlen(str_repeat("b", 50)), $n % 3 || strlen(str_repeat("c", 50)));',
    'match' => 'user(str_repeat("a", 50), match (strlen(str_repeat("b", $n++ % 3))) { 0 => str_repeat("c", 50), 1 => strrev(str_repeat("d", 50)), default => 5 });',
    'call_user_func' => 'call_user_func("user", str_repeat("a", 50), strrev(str_repeat("b", 50))); call_user_func_array("user", array_fill(0, 5, str_repeat("c", 50)));',
    'array functions' => 'count(array_filter(array_map(null, range(1, 40), array_reverse(range(1, 40))), static fn (array $x): bool => in_array(strlen(str_repeat("a", 50)), $x, true)));',
    'sort' => '$list = [3, 1, 2]; usort($list, "strcmp"); usort($list, static fn (int $a, int $b): int => strcmp(str_repeat("a", $a), str_repeat("b", $b)));',
    'generator' => 'foreach (numbers(3) as $i) { user(str_repeat("a", 50), $i, strrev(str_repeat("b", 50))); } user(...numbers(4));',
    'generator in an argument' => 'user(str_repeat("a", 50), (static function () { user(str_repeat("b", 50), yield strlen(str_repeat("c", 50))); })()->current());',
    'fiber' => '$fiber = new Fiber(static function (): void { user(str_repeat("a", 50), Fiber::suspend(strlen(str_repeat("b", 50))), strrev(str_repeat("c", 50))); }); '
        . '$fiber->start(); $fiber->resume(user(str_repeat("d", 50)));',
    'finally' => 'try { user(str_repeat("a", 50), strrev(str_repeat("b", 50))); } finally { user(str_repeat("c", 50), strrev(str_repeat("d", 50))); }',
    'destructor' => 'new class { public function __destruct() { user(str_repeat("a", 50), strrev(str_repeat("b", 50))); } };',
    'iterators' => 'iterator_count(new LimitIterator(new ArrayIterator(array_fill(0, 9, str_repeat("a", 50))), strlen(strrev("ab")), user(str_repeat("b", 50))));',
    'include' => 'user(str_repeat("a", 50), (include $file), strrev(str_repeat("b", 50)));',
    'a slow call in a quick one' => 'strlen(str_repeat("a", time_nanosleep(0, 20000000) ? 1000 : 0));',
];
if (patience() > 1) {
    // Under valgrind: PHP up to 8.3 frees the object of an interrupted `new` that is assigned or
    // called on at the end of the request only.
    unset($shapes['new'], $shapes['generator in an argument'], $shapes['fiber'], $shapes['iterators'], $shapes['destructor'], $shapes['sort']);
}
$file = tempnam(sys_get_temp_dir(), 'nrllm-include-');
file_put_contents($file, '<?php return strlen(strrev(str_repeat("a", 50)));');
$db = new TestDb();
$runtime = $db->runtime();
foreach ($shapes as $label => $code) {
    $loop = eval('return static function (Box $box, string $file, Closure $closure): void { $n = 7; while (true) { ' . $code . ' } };');
    $took = [];
    for ($loss = 0; $loss < (int) (getenv('NRLLM_TEST_LOSSES') ?: 2); $loss++) {
        $uid = $db->running(time() + 100);
        $lease = $runtime->keepLease($uid, 'worker:a', 20, ['everyMs' => 100, 'interruptOnLoss' => true]);
        $start = ms();
        try {
            $db->query("UPDATE tx_nrllm_agentrun SET claimed_by = 'worker:b' WHERE uid = ?", [$uid]);
            $loop(new Box(), $file, static fn (string ...$x): int => count($x));
        } catch (NrLlmLeaseLostException $lost) {
            $took[] = ms() - $start;
            strlen($lost->getTraceAsString());
            // Arguments that were freed before the backtrace copied them are overwritten now.
            $fresh = array_map(static fn (int $i): string => str_repeat('z', 50), range(1, 500));
            if (str_contains(json_encode($lost->getTrace(), JSON_PARTIAL_OUTPUT_ON_ERROR), 'zzz')) {
                echo "$label: the backtrace has arguments that were freed\n";
            }
        }
        unset($lost, $lease, $fresh);
        // Takes the memory that a wrong end would have freed twice.
        $garbage = array_map(static fn (int $i): array => ["k$i" => [$i]], range(1, 2000));
        unset($garbage);
    }
    // A heartbeat notices the loss after 100 ms; the rest is one iteration, and the machine. One
    // that waits for luck is always late.
    echo $took !== [] && min($took) < 500 * patience() ? '' : "$label: " . json_encode($took) . " ms\n";
}
unlink($file);
echo "done\n";
?>
--EXPECT--
done

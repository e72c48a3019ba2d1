# Rules 2, 3 and 4 of background 5 (1, 4 and 5 of ADR-18): the states.
#
# 2: decides from an SDFG and the one before it whether the number of states is the same. States of nested SDFGs do not
#    count, because optimisation inside of maps may fuse them, nor do those that gt4py adds at last for its metrics.
#    Cannot decide it from one SDFG.
# 3: decides whether interstate edges, and conditions of branches and loops, use scalars and symbols only. It reads the
#    names in the code, so that a name in a string literal counts, too.
# 4: decides whether a cycle of states exists. Loop regions are none.

def rule_2($before):
  def is_metric: .label == "metrics_entry" or .label == "metrics_exit";
  def count: [.[0].root.blocks |= map_values(select(is_metric | not)) | .[0] | states] | length;
  count as $now | ($before | count) as $then
  | select($now != $then)
  | finding("2"; "1"; "error"; ""; ""; "the number of states was \($then) and is \($now)");

def rule_3:
  .[] | . as $sdfg
  | [$sdfg.arrays | to_entries[] | select(.value.kind != "Scalar") | {key: .key, value: true}] | from_entries
  | select(. != {}) as $arrays
  | [$sdfg | regions | .label as $label | .tests[] | .where as $where
     | .text | names[] | select($arrays[.]) | {name: ., where: $where, region: $label}]
  | unique[]
  | finding("3"; "4"; "error"; "\($sdfg.path)\(.region)"; .name; "\(.where) uses this array, and not a scalar");

# The ids that are left of $next when those that nothing leads to are removed, again and again: none without a cycle.
def left($next):
  reduce $next[][] as $id ({}; .[$id] += 1)
  | {leading: ., removed: {}, todo: [. as $leading | $next | keys_unsorted[] | select($leading[.] == null)]}
  | until(.todo == [];
      .todo[-1] as $at | .todo |= .[:-1] | .removed[$at] = true
      | reduce $next[$at][]? as $to (.; .leading[$to] -= 1 | if .leading[$to] == 0 then .todo += [$to] else . end))
  | .removed as $removed | $next | keys_unsorted[] | select($removed[.] | not);

def rule_4:
  .[] | .path as $path | regions | . as $region
  | [left(.next) | select(reached($region.next; .)[.]) | $region.blocks[.].label]
  | select(. != [])
  | finding("4"; "5"; "error"; "\($path)\(.[0])"; ""; "the states \(join(", ")) form a cycle");

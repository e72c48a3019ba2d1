# Rule 1 of background 5 (3 of ADR-18): global memory is input or output, or its output depends on it elementwise.
#
# Decides, for each array of the outermost SDFG that is read and written:
#   - in one map, copy or tasklet: the indices are compared as text. Equal points in all of its parameters are
#     elementwise, if the read comes before the write; otherwise they race. Indices that never meet are harmless, if
#     no variable of a map or loop is in them; anything else breaks the rule. What a nested SDFG does with more than
#     one element is unknown.
#   - in two maps of a state: a read that comes after the write is harmless; without an order between them it is a race,
#     unless their ranges never meet.
#   - a read that comes before the write, in this state or in another one: it breaks the rule if the write depends on it
#     over transients, and the indices along the way exchange axes, or add up to a shift that is a number other than 0.
#     It is unknown if the write depends on the read, and on the way an index is looked up, constant or a range, a view
#     is used, or the shifts add up to a symbol.

# An index as a sum: "1 - r + 2*s" is {offset: 1, base: {r: -1, s: 2}}. What is in parentheses is one name.
def linear:
  if contains("(") or contains("/") then {offset: 0, base: {(.): 1}}
  else
    reduce (split(" - ") | join(" + -") | split(" + ")[] | ltrimstr("+")) as $term ({offset: 0, base: {}};
      ($term | capture("^(?<factor>-?[0-9]+)([*](?<name>.+))?$")
        // {factor: (if startswith("-") then "-1" else "1" end), name: ltrimstr("-")}) as $part
      | ($part.factor | tonumber) as $factor
      | if $part.name == null then .offset += $factor else .base[$part.name] += $factor end)
    | .base |= with_entries(select(.value != 0))
  end;

# Whether two lists of indices have no element in common, in the same iteration of whatever is around them.
def are_apart($one; $other; $params):
  def ends:
    split(":") | [.[0], .[1] // .[0]] as $ends
    | (if .[2] // "" | startswith("-") then $ends | reverse else $ends end)
    | {first: (.[0] | linear), last: (.[1] | linear)};
  def is_below($a; $b): $a.last.base == $b.first.base and $a.last.offset < $b.first.offset;
  def is_fixed: (names - $params) == names;
  $one != null and $other != null and ($one | length) == ($other | length)
  and any(range($one | length);
    . as $axis | [$one[$axis], $other[$axis]]
    | all(.[]; is_fixed) and (map(ends) | is_below(.[0]; .[1]) or is_below(.[1]; .[0])));

def is_point: . != null and all(.[]; contains(":") | not);

# The outermost map around a node, or the node itself.
def group($nodes; $id): if $nodes[$id].scope == null then $id else group($nodes; $nodes[$id].scope) end;

# The ends of an edge inside of maps: {indices, params, id, type}, what is used there and by which node.
def read_ends($state; $edge; $params):
  $state.nodes[$edge.dst] as $node
  | if ($node | is_entry) and ($edge.to // "" | startswith("IN_")) then
      $state.out[$node.id][] | select(.from == "OUT_" + $edge.to[3:]) | read_ends($state; .; $params + $node.map.params)
    else {indices: $edge.read, params: $params, id: $node.id, type: $node.type} end;

def write_ends($state; $edge; $maps):
  $state.nodes[$edge.src] as $node
  | if ($node | is_exit) and ($edge.from // "" | startswith("OUT_")) then
      $state.in[$node.id][] | select(.to == "IN_" + $edge.from[4:])
      | write_ends($state; .; $maps + [$state.nodes[$node.scope].map])
    else
      {indices: $edge.write, id: $node.id, type: $node.type,
       params: [$maps[] | .params[]],
       # of these, the parameters with more than one value
       needed: [$maps[] | [.params, .ranges] | transpose[] | select(.[1] | contains(":")) | .[0]]}
    end;

# What one iteration reads, beside what it writes: one of the names in rule_1.
def compared($read; $write; $next; $loops):
  ($read.indices) as $from | ($write.indices) as $into
  | if are_apart($from; $into; $write.params + $loops) then "apart"
    elif $from == $into and ($from | is_point) then
      if $write.needed - [$into[] | names[]] != [] then "not elementwise"
      elif $read.id == $write.id or reached($next; $read.id)[$write.id] then "elementwise"
      else "race in a map" end
    elif all($from, $into; is_point) then "not elementwise"
    elif [$read.type, $write.type] | any(. == "NestedSDFG" or . == "LibraryNode") then "unknown"
    else "not elementwise" end;

# What a state does with the array $data, if it reads and writes it: the names in rule_1. $loops are variables of loops.
def uses($data; $loops):
  . as $state
  | .nodes as $nodes
  | [access_nodes | select(.data == $data)] as $found
  | [$found[] | outputs($state)] as $reads
  | [$found[] | inputs($state)] as $writes
  | select($reads != [] and $writes != [])
  | (.out | map_values([.[].dst])) as $inner
  | ([.out[][] | {src: group($nodes; .src), dst: group($nodes; .dst)} | select(.src != .dst)] | unique
     | by(.src) | map_values([.[].dst])) as $next
  | $reads[] as $read | $writes[] as $write
  | group($nodes; $read.dst) as $reader | group($nodes; $write.src) as $writer
  | if $read == $write then  # a copy within the array
      if $read.read == $read.write then "elementwise"
      elif are_apart($read.read; $read.write; $loops) then "apart"
      else "not elementwise" end
    elif $reader == $writer and $nodes[$reader].type != "AccessNode" then
      read_ends($state; $read; []) as $from | write_ends($state; $write; []) as $into
      | compared($from; $into; $inner; $loops)
    elif $reader == $writer or reached($next; $reader)[$writer] or reached($next; $writer)[$reader] then "in order"
    elif are_apart($read.read; $write.write; []) then "apart"
    else "race" end;

# How data flows through the outermost maps and copies of a state: {from, to, state, reads, writes}, with the edges of
# each map or copy.
def flows:
  . as $state | .nodes as $nodes
  | [access_nodes | select(.scope == null) | .data as $data | $state.out[.id] // [] | .[] | select(.data)
     | {data: $data, at: group($nodes; .dst), edge: .}] as $reads
  | ([access_nodes | select(.scope == null) | .data as $data | inputs($state)
      | {data: $data, at: group($nodes; .src), edge: .}] | by(.at)) as $writes
  | ($reads | group_by([.at, .data])[]
     | .[0] as $one
     | if $nodes[$one.at].type == "AccessNode" then
         .[] | {from: $one.data, to: $nodes[$one.at].data, state: $state, reads: [.edge], writes: [.edge]}
       else
         [.[].edge] as $edges
         | $writes[$one.at] // [] | group_by(.data)[]
         | {from: $one.data, to: .[0].data, state: $state, reads: $edges, writes: [.[].edge]}
       end);

def minus($other):
  .offset -= $other.offset
  | .base = (reduce ($other.base | to_entries[]) as $term (.base; .[$term.key] = (.[$term.key] // 0) - $term.value)
             | with_entries(select(.value != 0)));

# For each axis that is written: {axis, shift}, the axis that is read and how much further on, or null where the two
# have no variable of a map in common. No axis if nothing is known.
def shifts:
  def parts($params): linear | . as $index | (.base | keys_unsorted - (keys_unsorted - $params)) as $found
    | if ($found | length) == 1 and .base[$found[0]] == 1 then {variable: $found[0], rest: del(.base[$found[0]])}
      else null end;
  def aligned($read; $write; $params):
    [$read // [] | .[] | parts($params)] as $from
    | [$write // [] | .[] | parts($params) | . as $into
       | if . == null then null
         else ([range($from | length) | select($from[.].variable == $into.variable)] | .[0]) as $axis
           | if $axis == null then null
             else {axis: $axis, shift: ($from[$axis].rest | minus($into.rest))} end
         end];
  .state as $state | (.state.out | map_values([.[].dst])) as $next
  | if .reads == .writes then  # a copy
      .reads[]
      | (.read == null or .write == null) as $is_implied  # What is left out is the other one, or begins at 0.
      | if .from == "views" or .to == "views" then [] else [.read // .write // [], .write // .read // []] end
      | if (.[0] | length) != (.[1] | length) then [] else map(map(split(":"))) | transpose end
      | [to_entries[]
         | if .value[0][2] != .value[1][2] or ($is_implied and .value[0][0] != "0") then null
           else {axis: .key, shift: (.value | map(.[0] | linear) | .[1] as $into | .[0] | minus($into))} end]
    else
      ([.writes[] | write_ends($state; .; [])] | unique_by([.id, .indices])) as $ends
      | [.reads[] | read_ends($state; .; [])] | group_by(.id)[]
      | (reached($next; .[0].id) + {(.[0].id): true}) as $later
      | unique_by(.indices)[] as $from
      | $ends[] | select($later[.id])
      | aligned($from.indices; .indices; $from.params)
    end;

# Whether an array is written at other indices than those at which it was read, over transients: {use, state} if an
# axis comes from another one along a way back to the array, or the sum of its shifts is a number other than 0; or if
# this is not known. Empty if there is no way back, or all sums are 0.
# $flows are those between transients, from $data to one, and from one to $data.
def shifted_over_others($flows; $data):
  def is_shifted:
    any(range(length) as $axis | .[$axis] | values | .axis != $axis or (.shift | .base == {} and .offset != 0); .);
  def is_known: . != [] and all(.[]; . != null and .shift.base == {});
  ($flows | by(.from) | map_values([.[].to])) as $after
  | ($flows | by(.to) | map_values([.[].from])) as $before
  | reached($after; $data) as $later | reached($before; $data) as $earlier
  | select($later[$data])
  | ([$flows[] | select($later[.to] and $earlier[.to] and ($later[.from] or .from == $data) and $earlier[.from])
      | {from, to, state: .state.label, shifts: ([shifts] | unique[])}] | by(.from)) as $steps
  | {seen: {}, found: null, unknown: null, todo: [{data: $data, shifts: null}]}
  | until(.todo == [] or .found != null or (.seen | length) > 500;
      .todo[-1] as $at | .todo |= .[:-1]
      | ([$steps[$at.data][]?
          | {data: .to, state,
             shifts: [.shifts[] | if . == null or $at.shifts == null then .
                      else .shift as $more | $at.shifts[.axis]
                        | if . == null then . else .shift |= minus({offset: 0, base: {}} | minus($more)) end
                      end]}]) as $new
      | [$new[] | select(.data == $data)] as $back
      | .found //= ([$back[] | select(.shifts | is_shifted)] | .[0].state)
      | .unknown //= ([$back[] | select(.shifts | is_known | not)] | .[0].state)
      | reduce ($new[] | select(.data != $data)) as $one (.;
          ($one | {data, shifts} | tojson) as $key
          | if .seen[$key] then . else .seen[$key] = true | .todo += [$one] end))
  | if .found != null then {use: "shifted", state: .found}
    elif .unknown != null then {use: "maybe shifted", state: .unknown}
    else empty end;

def rule_1:
  def level:
    {"race": "error", "race in a map": "error", "not elementwise": "error", "shifted": "error",
     "unknown": "unknown", "maybe shifted": "unknown"}[.] // "info";
  def message:
    {
      "race": "a map reads it without an order before or after the one that writes it",
      "race in a map": "a branch in a map reads it without an order before the write of the same map",
      "not elementwise": "it is read and written at different indices by the same map or copy",
      "shifted": "it is written at other indices than those at which it was read for this, over transients",
      "maybe shifted": "it is written, over transients, maybe at other indices than those at which it was read for this",
      "unknown": "a nested SDFG or library node reads and writes it, maybe at different indices",
      "elementwise": "it is input and output, elementwise",
      "apart": "it is input and output, at indices that never meet",
      "in order": "it is input and output, in a fixed order"
    }[.];
  .[] | select(.path == "") | . as $sdfg
  | [states | . as $state | access_nodes | select(reads($state)) | .data] as $reads
  | [states | . as $state | access_nodes | select(writes($state)) | .data] as $writes
  | [($reads - ($reads - $writes) | unique)[]
     | select($sdfg.arrays[.].transient == false and $sdfg.arrays[.].kind != "Scalar")]
  | (if . == [] then [] else [$sdfg | states | flows | select(.from != .to)] end) as $flows
  | [$flows[] | select(.from | $sdfg.arrays[.].transient) | select(.to | $sdfg.arrays[.].transient)] as $between
  | ([$flows[] | select(.from | $sdfg.arrays[.].transient | not) | select(.to | $sdfg.arrays[.].transient)] | by(.from)) as $begin
  | ([$flows[] | select(.from | $sdfg.arrays[.].transient) | select(.to | $sdfg.arrays[.].transient | not)] | by(.to)) as $end
  | [$sdfg | regions | .variable | values] as $loops
  | ([$sdfg | states | . as $state | [access_nodes | .data] | unique[] | {data: ., state: $state}] | by(.data)) as $states
  | .[] as $data
  | [$states[$data][].state | .label as $label | [uses($data; $loops)] | unique[] | {state: $label, use: .}] as $uses
  | ($uses | map(.use) | map(select(level != "info"))) as $serious
  | (if $serious != [] then $uses[] | select(.use | level != "info")
     else
       ([shifted_over_others($between + ($begin[$data] // []) + ($end[$data] // []); $data)] + $uses)[0]
       // {use: "in order", state: ""}
     end)
  | finding("1"; "3"; .use | level; .state; $data; .use | message);

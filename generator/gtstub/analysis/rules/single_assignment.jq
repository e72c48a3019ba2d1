# Rules 5, 6, 7 and 8 of background 5 (6, 9, 7 and 8 of ADR-18): each transient is written once.
#
# 5: decides whether a state that follows the write of a transient, in the order of states and regions, has another
#    access node that writes it. Branches exclude each other; a loop does not follow itself.
# 6: decides whether an access node that reads a transient which its state does not write is a source node, that is,
#    has no incoming edge, not even one that only orders.
# 7: decides whether an access node is written by one edge. This is only recommended.
# 8: decides whether a state has two access nodes of one transient.
#
# All four are decidable. A scalar that breaks rule 5 or 8 carries a scan, or is private to an iteration: this is advice.
# Global memory is left to rule 1, which takes precedence over these: it is info under rule 7, and not looked at under
# the others.

def level($arrays; $data): if $arrays[$data].kind == "Scalar" then "advice" else "error" end;

def rule_5:
  # [{data, state}] of all writes in a block or region
  def written($arrays):
    if .state then .state as $state
      | [$state | access_nodes | select($arrays[.data].transient and writes($state)) | .data] | unique
      | map({data: ., state: $state.label})
    else [.regions[] | .blocks[] | written($arrays)] | add // [] end;
  .[] | . as $sdfg
  | regions | . as $region
  | (.blocks | map_values(written($sdfg.arrays))) as $written
  | (reduce $written[][].data as $data ({}; .[$data] += 1)) as $times
  | [$written | keys_unsorted[] | . as $id
     | $written[$id] | map(select($times[.data] > 1)) | select(. != []) | unique_by(.data)
     | (reduce .[] as $write ({}; .[$write.data] = $write.state)) as $first
     | reached($region.next; $id) | del(.[$id]) | keys_unsorted[]
     | $written[.][] | select($first[.data]) | {data, state, first: $first[.data]}]
  | unique_by([.data, .state])[]
  | finding("5"; "6"; level($sdfg.arrays; .data); "\($sdfg.path)\(.state)"; .data;
      "it is written again, after state '\(.first)' has written it");

def rule_6:
  .[] | . as $sdfg | states | . as $state
  | [access_nodes | select($sdfg.arrays[.data].transient)] | group_by(.data)[]
  | select(all(.[]; writes($state) | not))
  | .[0].data as $data
  | select(any(.[]; reads($state) and ($state.in[.id] // []) != [] and all($state.in[.id][]; .to != "views")))
  | finding("6"; "9"; "error"; "\($sdfg.path)\($state.label)"; $data;
      "it is read and not written here, so its access node must have no incoming edge");

def rule_7:
  .[] | . as $sdfg | states | . as $state
  | access_nodes | .data as $data
  | ([inputs($state)] | length) as $count
  | select($count > 1)
  | finding("7"; "7"; if $sdfg.arrays[$data].transient then "advice" else "info" end; "\($sdfg.path)\($state.label)"; $data;
      "its access node is written by \($count) edges");

def rule_8:
  .[] | . as $sdfg | states | . as $state
  | [access_nodes | select($sdfg.arrays[.data].transient)] | group_by(.data)[] | select(length > 1)
  | .[0].data as $data
  | finding("8"; "8"; level($sdfg.arrays; $data); "\($sdfg.path)\($state.label)"; $data;
      "it has \(length) access nodes in this state");

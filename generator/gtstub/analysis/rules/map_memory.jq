# Rule 10 of ADR-18, which background 5 does not have: memory inside of maps.
#
# Decides whether what an access node inside a map refers to has the lifetime Scope, and the storage Default or
# Register. This includes the transients of SDFGs that are nested in a map. Their other arrays are memory from outside
# of the map under another name.

def rule_adr_10:
  .[] | . as $sdfg | states | . as $state
  | [access_nodes
     | . as $node | $sdfg.arrays[.data]
     | select(if $sdfg.in_map then .transient else $node.scope != null end)
     | select(.lifetime != "Scope" or (.storage != "Default" and .storage != "Register"))
     | {data: $node.data, lifetime, storage}] | unique[]
  | finding(""; "10"; "error"; "\($sdfg.path)\($state.label)"; .data;
      "it is used inside a map, but has the lifetime \(.lifetime) and the storage \(.storage)");

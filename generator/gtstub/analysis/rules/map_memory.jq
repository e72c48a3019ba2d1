# Rule 10 of ADR-18, which background 5 does not have: memory inside of maps.
#
# Decides whether a transient that an access node inside a map refers to has the lifetime Scope, and the storage Default
# or Register. This includes the transients of SDFGs that are nested in a map. Global memory is left to rule 1, which
# takes precedence. Other arrays of nested SDFGs, and views, are memory from outside under another name.

def rule_adr_10:
  .[] | . as $sdfg | states | . as $state
  | [access_nodes
     | . as $node | $sdfg.arrays[.data]
     | select(.transient and (.kind | endswith("View") | not) and ($sdfg.in_map or $node.scope != null))
     | select(.lifetime != "Scope" or (.storage != "Default" and .storage != "Register"))
     | {data: $node.data, lifetime, storage}] | unique[]
  | finding(""; "10"; "error"; "\($sdfg.path)\($state.label)"; .data;
      "it is used inside a map, but has the lifetime \(.lifetime) and the storage \(.storage)");

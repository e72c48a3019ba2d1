# Rules 9, 10 and 11 of background 5 (11 and 12 of ADR-18): maps and the names of their variables.
#
# 9:  decides whether each map variable is spelled as gt4py spells it, i_<dimension>_gtx_<kind>, where the kind is
#     horizontal, vertical or localdim, and whether a dimension has one kind. Two underscores before "gtx", as in the
#     documents, and a prefix, as of blocked loops, are allowed. Inside of a map this is advice: gt4py's own library
#     nodes have maps over "i" there. With the signature of the program (11.1) it decides
#     whether the dimension is one of the program's, of this kind, and whether the variable indexes only axes of
#     that dimension in the arrays of the program. Cannot decide this for transients, whose axes have no names.
# 10: finds maps of a state with the same variables and ranges. They may be merged: the rule is a permission.
# 11: decides from an SDFG and the one before it whether variables have new names (11.5). This is unknown if a name that
#     is gone was not spelled so, because such a variable may be renamed. If no map has a name any more, its maps were
#     removed, or merged with others: this is not decidable. SDFGs that are nested in a map do not count, because the
#     maps of library nodes appear there.

def spelled: capture("i_(?<dimension>.+?)_{1,2}gtx_(?<kind>horizontal|vertical|localdim)$");

# gt4py lets variables of a dimension index the axes of its staggered counterpart.
def base: ltrimstr("_Staggered");

def kind_in_program: if . == "local" then "localdim" else . end;

def rule_9:
  .[] | . as $sdfg
  | ([states | .label as $label | .nodes[] | select(.type == "MapEntry") | .map.params[] | {name: ., state: $label}]
     | unique_by(.name)) as $found
  | ($found[] | select(.name | [spelled] == [])
     | finding("9"; "11"; if $sdfg.in_map then "advice" else "error" end; "\($sdfg.path)\(.state)"; .name;
         "this variable of a map is not spelled i_<dimension>_gtx_<horizontal, vertical or localdim>")),
    ([$found[] | . + (.name | spelled)] | group_by(.dimension)[] | select(map(.kind) | unique | length > 1)
     | finding("9"; "11"; "error"; "\($sdfg.path)\(.[0].state)"; .[0].name;
         "the dimension '\(.[0].dimension)' is also iterated over as \(.[1].name)"));

# The dimensions of a program signature, {<name>: kind}, and those of each field, {<leaf>: [name]}.
def dimensions:
  def fields($name):
    if .kind == "tuple" then .elements | to_entries[] | .key as $key | .value | fields("\($name)_\($key)")
    elif .kind == "field" then {key: $name, value: .dims} else empty end;
  ([.parameters[] | .name as $name | .type | fields($name)] | from_entries)
  + ([.connectivities[] | {key: "gt_conn_\(.name)", value: [.source, .neighbor]}] | from_entries) as $fields
  | {
      kinds: ([$fields[][], .connectivities[].codomain] | map({key: (.name | base), value: (.kind | kind_in_program)})
              | from_entries),
      fields: $fields
    };

def rule_9_dimensions($program):
  ($program | dimensions) as $known
  | .[] | . as $sdfg
  | (([states | .label as $label | .nodes[] | select(.type == "MapEntry") | .map.params[] | {name: ., state: $label}]
      | unique_by(.name) | .[] | . + (.name | spelled)
      | $known.kinds[.dimension | base] as $kind | select($kind != .kind)
      | finding("9"; "11.1"; "error"; "\($sdfg.path)\(.state)"; .name;
          if $kind == null then "the program has no dimension '\(.dimension)'"
          else "the dimension '\(.dimension)' of the program is \($kind)" end)),
     ([select($sdfg.path == "") | states | .label as $label
       | . as $state
       | ([.nodes[] | select(.type == "MapEntry") | .map.params[] | {key: ., value: [spelled]}] | from_entries)
         as $variables
       | access_nodes | . as $node | $known.fields[.data] | values | . as $axes
       | $node | ((outputs($state) | read_ends($state; .; [])), (inputs($state) | write_ends($state; .; []))) | .indices
       | select(length == ($axes | length)) | . as $indices | range($axes | length) as $axis
       | $indices[$axis] | names[] | . as $name | $variables[.][0] | values
       | select(.kind != ($axes[$axis].kind | kind_in_program)
                or ($known.kinds[.dimension | base] != null and (.dimension | base) != ($axes[$axis].name | base)))
       | {name: $name, state: $label, data: $node.data, axis: $axes[$axis].name}]
      | unique_by([.name, .data])[]
      | finding("9"; "11.1"; "error"; .state; .name;
          "this variable of a map indexes the axis '\(.axis)' of '\(.data)'")));

def rule_10:
  .[] | . as $sdfg | states | . as $state
  | [.nodes[] | select(.type == "MapEntry")]
  | group_by([.scope, ([.map.params, .map.ranges] | transpose | sort)])[] | select(length > 1)
  | finding("10"; "12"; "info"; "\($sdfg.path)\($state.label)"; .[0].label;
      "\(length) maps have these variables and ranges, and may be merged");

def rule_11($before):
  def variables: [.[] | select(.in_map | not) | states | .nodes[] | select(.type == "MapEntry") | .map.params[]] | unique;
  variables as $now | ($before | variables) as $then
  | (($now - $then)[] | select(startswith("__gtx_coarse_") | not)
     | finding("11"; "11.5"; if all($then - $now | .[]; [spelled] != []) then "error" else "unknown" end; ""; .;
         "no map had a variable of this name before")),
    (($then - $now)[]
     | finding("11"; "12"; "unknown"; ""; .;
         "no map has this variable any more: its maps were removed, or merged with others"));

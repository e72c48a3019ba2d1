# What the rules read of an SDFG. DaCe's JSON form becomes, for each SDFG at any depth:
#
#   {path, in_map, arrays, root}
#     path:   labels from the outermost SDFG to this one, "state/nested/..."; empty for the outermost
#     in_map: whether this is a nested SDFG inside a map
#     arrays: <name>: {kind: "Array" | "Scalar" | ..., transient, storage, lifetime}
#     root:   a region
#   region: {label, variable, blocks: {<id>: block}, next: {<id>: [id]}, tests: [{where, text}]}
#     variable: that of a loop, or null
#     tests:    code on interstate edges and in conditions of branches and loops
#   block:  {label, state: null, regions: [region], exclusive: bool} or {label, state, regions: []}
#     exclusive: of its regions one is executed, as of branches
#   state:  {label, nodes: {<id>: node}, in: {<id>: [edge]}, out: {<id>: [edge]}}
#   node:   {id, type, data, scope, label, map: {params, ranges}}; scope is the id of the entry of its map, or null
#   edge:   {src, dst, data, from, to, read, write}; from and to are connectors; an edge that only orders has no data
#     read and write are the indices at its ends, a text for each axis ("i", "0:9:1"), or null
#
# DaCe leaves out attributes that have their default value.

def without_dollars: split("$") | join("");

def indices:
  if . == null then null
  elif .ranges then [.ranges[] | if .start == .end then "\(.start)" else "\(.start):\(.end):\(.step)" end | without_dollars]
  elif .indices then [.indices[] | tostring | without_dollars]
  else [tojson | without_dollars] end;

def by(key): group_by(key) | map({key: (.[0] | key), value: .}) | from_entries;

def is_entry: .type == "MapEntry" or .type == "ConsumeEntry";
def is_exit: .type == "MapExit" or .type == "ConsumeExit";

def node:
  {
    id: (.id | tostring), type, label, data: .attributes.data, scope: .scope_entry,
    map: (if .type == "MapEntry" then
      {params: .attributes.params, ranges: (.attributes.range | indices)}
      elif .type == "ConsumeEntry" then {params: [.attributes.pe_index], ranges: ["0:\(.attributes.num_pes):1"]}
      else null end)
  };

def edge:
  .attributes.data.attributes as $memlet
  | {
      src, dst, data: $memlet.data, from: .src_connector, to: .dst_connector,
      read: ($memlet.src_subset // (if $memlet.is_data_src == false then null else $memlet.subset end) | indices),
      write: ($memlet.dst_subset // (if $memlet.is_data_src then null else $memlet.subset end) | indices)
    };

def state:
  [.edges[] | edge] as $edges
  | {label, nodes: ([.nodes[] | node | {key: .id, value: .}] | from_entries),
     in: ($edges | by(.dst)), out: ($edges | by(.src))};

def code: if type == "object" then .string_data // "" else tostring end;

def region:
  def block:
    if .type == "SDFGState" then {label, state: state, regions: []}
    elif .type == "ConditionalBlock" then {label, state: null, regions: [.branches[][1] | region], exclusive: true}
    else {label, state: null, regions: [region], exclusive: false} end;
  {
    label: (.label // ""),
    variable: .attributes.loop_variable,
    blocks: ([.nodes[] | {key: (.id | tostring), value: block}] | from_entries),
    next: (.edges | by(.src) | map_values([.[].dst])),
    tests: [
      (.edges[] | .attributes.data.attributes as $edge | "the edge to block \(.dst)" as $where
        | ($edge.assignments // {} | to_entries[] | {where: "the assignment to '\(.key)'", text: (.value | tostring)}),
          ($edge.condition // empty | {where: "a condition", text: code})),
      (.nodes[] | select(.type == "ConditionalBlock") | .label as $label | .branches[][0] // empty
        | {where: "the condition of '\($label)'", text: code}),
      (.attributes // {} | .init_statement, .loop_condition, .update_statement | values
        | {where: "a loop", text: code})
    ]
  };

def container:
  .attributes as $attributes
  | {kind: .type, transient: ($attributes.transient // false), storage: ($attributes.storage // "Default"),
     lifetime: ($attributes.lifetime // "Scope")};

def raw_regions:
  ., (.nodes[] | select(.type != "SDFGState") | (if .type == "ConditionalBlock" then .branches[][1] else . end)
      | raw_regions);

def sdfgs($path; $in_map):
  {path: $path, in_map: $in_map, arrays: (.attributes._arrays // {} | map_values(container)), root: region},
  (raw_regions | .nodes[] | select(.type == "SDFGState") | .label as $label
    | .nodes[] | select(.type == "NestedSDFG" and .attributes.sdfg)
    | ($in_map or .scope_entry != null) as $inside
    | .attributes | .label as $name | .sdfg | sdfgs("\($path)\($label)/\($name)/"; $inside));

def sdfgs:
  if .type == "SDFG" and (.attributes.name | type) == "string" then [sdfgs(""; false)] else error("no SDFG") end;

# The regions of an SDFG at any depth, and its states.
def regions: .root | recurse(.blocks[].regions[]);
def states: regions | .blocks[].state | values;

# Of a state: edges that carry data into or out of a node, and whether anything writes or reads at it. The edge between
# an array and a view of it reads or writes the array; for the view it only says what is viewed.
def inputs($state): ($state.in[.id] // [])[] | select(.data and .to != "views");
def outputs($state): ($state.out[.id] // [])[] | select(.data and .from != "views");
def writes($state): any(inputs($state); true);
def reads($state): any(outputs($state); true);

def access_nodes: .nodes[] | select(.type == "AccessNode");

# What is reached from $from over the object $next, <id>: [id]: an object of ids. $from is in it if there is a cycle.
def reached($next; $from):
  {seen: {}, todo: ($next[$from] // [])}
  | until(.todo == [];
      .todo[-1] as $at | .todo |= .[:-1]
      | if .seen[$at] then . else .seen[$at] = true | .todo += ($next[$at] // []) end)
  | .seen;

def names: [scan("[A-Za-z_][A-Za-z0-9_]*")];

def finding($rule; $adr; $level; $where; $data; $message):
  {rule: $rule, adr: $adr, level: $level, state: $where, data: $data, message: $message};

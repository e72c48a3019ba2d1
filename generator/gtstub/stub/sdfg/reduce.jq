# Reduces an SDFG in DaCe's JSON form (.sdfg, or .sdfgz unpacked) to what gtstub reads of it, in the form of model.py.
#
# Here are the facts about DaCe's JSON: where things stand in it, and what DaCe leaves out because it has its default
# value. read.py makes objects of the result.

def kind: .type | strings // error("there is no type");

def attributes: .attributes | objects // error("there are no attributes");

def text: tostring;

# Code is {string_data, language}, or the text itself.
def code: if type == "object" then .string_data // "" else . // "" end | text;

# A condition without parentheses around all of it; null if it always holds.
def condition:
  code | trim
  | if startswith("(") and endswith(")") and (.[1:-1] | test("[()]") | not) then .[1:-1] else . end
  | if . == "" or . == "1" or . == "True" then null else . end;

# Indices are ranges of one element. Another kind has no ranges, and is named.
def subset:
  if . == null then null
  elif .type == "Range" then {ranges: [.ranges[] | [.start, .end, .step // 1, .tile // 1] | map(text)], unread: ""}
  elif .type == "Indices" then {ranges: [.indices[] | text | [., ., "1", "1"]], unread: ""}
  else {ranges: [], unread: (.type // "unknown subset")} end;

# A storage that is an object is the shared memory of a GPU.
def container:
  attributes as $it
  | {
      kind: kind,
      dtype: ($it.dtype // "int32"),
      shape: [$it.shape // [1] | .[] | text],
      strides: [$it.strides // [1] | .[] | text],
      total_size: ($it.total_size // "" | text),
      storage: (($it.storage // "Default") | if type == "string" then . else "GPU_Shared" end),
      lifetime: ($it.lifetime // "Scope"),
      is_transient: ($it.transient // false),
      has_offset: any($it.offset // [] | .[]; text != "0")
    };

# An edge without a memlet only orders two nodes.
def memlet:
  (attributes.data | if . == null then {} else attributes end) as $it
  | {
      src: (.src | tonumber), dst: (.dst | tonumber), src_connector, dst_connector,
      data: $it.data, subset: ($it.subset | subset), other_subset: ($it.other_subset | subset),
      is_data_src: $it.is_data_src, is_dynamic: ($it.dynamic // false), is_wcr: ($it.wcr != null)
    };

def transition:
  (attributes.data | attributes) as $it
  | {
      src: (.src | tonumber), dst: (.dst | tonumber),
      condition: ($it.condition | condition),
      assignments: ($it.assignments // {} | map_values(text))
    };

# The words in what is not read of a library node: it may use symbols there.
def words: [.. | strings | scan("[A-Za-z_][A-Za-z0-9_]*")] | unique;

def node(sdfg):
  attributes as $it
  | {
      id, kind: kind, label: ($it.label // .label // ""), entry: (.scope_entry | values | tonumber) // null,
      schedule: ($it.schedule // "Default")
    }
    + if .type == "AccessNode" then {container: $it.data}
      elif .type == "Tasklet" then
        {code: ($it.code | code), language: ($it.code.language? // "Python"), init_code: ($it.code_init | code)}
      elif .type == "MapEntry" then {variables: $it.params, ranges: ($it.range | subset), text: (.label // "")}
      elif .type == "ConsumeEntry" then
        {variables: [$it.pe_index], ranges: {ranges: [["0", "\($it.num_pes // 1) - 1", "1", "1"]], unread: ""}}
      elif .type == "NestedSDFG" and $it.sdfg then
        {sdfg: ($it.sdfg | sdfg), mapping: ($it.symbol_mapping // {} | map_values(text))}
      elif .type == "LibraryNode" then {classpath: .classpath, words: ($it | words)}
      else {} end;

def region(sdfg):
  def block:
    {id, kind: kind, label: (.label // "")}
    + if .type == "SDFGState" then {nodes: [.nodes[] | node(sdfg)], edges: [.edges[] | memlet]}
      elif .type == "ConditionalBlock" then
        {branches: [.branches[] | {condition: (.[0] | condition), region: (.[1] | region(sdfg))}]}
      elif has("nodes") then region(sdfg)
      else {} end;
  .attributes as $it
  | {
      id, kind: kind, label: (.label // ""),
      blocks: [.nodes[] | block], edges: [.edges[] | transition], start: .start_block
    }
    + if .type == "LoopRegion" then
        {
          variable: ($it.loop_variable // ""), is_inverted: ($it.inverted // false),
          init: ($it.init_statement | code), condition: ($it.loop_condition | condition),
          update: ($it.update_statement | code)
        }
      else {} end;

def sdfg:
  attributes as $it
  | region(sdfg)
  + {
      name: $it.name, label: "", containers: ($it._arrays // {} | map_values(container)),
      symbols: ($it.symbols // {}),
      constants: ($it.constants_prop // {} | map_values(.[1])),
      init_code: [$it.init_code // {} | .[] | code]
    };

sdfg

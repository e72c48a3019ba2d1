# Reduces a raw SDFG (.sdfg, or .sdfgz unpacked) to the parts that its signature needs.
#
# Input:  the SDFG as DaCe writes it. DaCe omits properties with default values.
# Output: {name, arg_names, arrays: {<name>: descriptor}, memory: [symbol], external: [storage], gpu: bool}
#         arrays:   the containers of the SDFG itself that are not transient
#         memory:   names of the symbols that the SDFG's handle depends on: they size memory that it keeps, or occur in
#                   its initialisation code. Names in nested SDFGs are translated to those of the outermost SDFG.
#         external: the storages of memory that the caller provides
#         gpu:      whether anything runs on a GPU

def identifiers: [scan("[A-Za-z_][A-Za-z0-9_]*")];

def descriptor: {
  type,
  dtype: .attributes.dtype,
  shape: .attributes.shape,
  strides: .attributes.strides,
  storage: (.attributes.storage // "Default"),
  lifetime: (.attributes.lifetime // "Scope"),
  transient: (.attributes.transient // false)
};

def arrays: .attributes._arrays // {};

# DaCe's code generation chooses the host's memory where nothing says another.
def storage_outside_of_maps: (.attributes.storage // "Default") | if . == "Default" then "CPU_Heap" else . end;

def is_kept: .attributes.lifetime == "Persistent" or .attributes.lifetime == "External";

# The blocks, states and nodes of an SDFG at any depth of its control flow, nested SDFGs included but not their nodes.
def elements: ., ((.nodes[]?, .branches[]?[1]) | elements);

def nested: elements | select(.type == "NestedSDFG") | .attributes | select(.sdfg);

def sdfgs: ., (nested | .sdfg | sdfgs);

def memory:
  ([arrays[] | select(is_kept) | .attributes | .shape[]?, .total_size // "" | tostring | identifiers[]]
   + [.attributes.init_code // {} | .[] | .string_data // "" | identifiers[]]
   + [nested | (.symbol_mapping // {}) as $outer | .sdfg | memory[] | $outer[.] // . | tostring | identifiers[]])
  | unique;

{
  name: .attributes.name,
  arg_names: (.attributes.arg_names // []),
  arrays: (arrays | map_values(select(.attributes.transient // false | not) | descriptor)),
  memory: memory,
  external: [sdfgs | arrays[] | select(.attributes.lifetime == "External") | storage_outside_of_maps] | unique,
  gpu: any(sdfgs | elements | .attributes.schedule? // empty | strings; startswith("GPU"))
}

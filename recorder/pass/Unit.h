// Unit.h: the image tables of one translation unit while they grow, and their bytes (formats/SPEC.md, "Image tables").
#pragma once

#include "format.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <string>
#include <vector>

namespace tracekit {

/// Index of a row in a table of the unit, or TK_NONE.
using Row = uint32_t;

class Unit {
public:
  Unit() { Strings.push_back('\0'); }

  /// The offset of `Text` in the strings table; "" is 0.
  uint32_t string(llvm::StringRef Text);

  /// The unit as it stands in the object file.
  std::string bytes() const;

  std::vector<tk_row_unit> Self;
  std::vector<tk_row_sources> Sources;
  std::vector<tk_row_locations> Locations;
  std::vector<tk_row_functions> Functions;
  std::vector<tk_row_paths> Paths;
  std::vector<tk_row_path_blocks> PathBlocks;
  std::vector<tk_row_blocks> Blocks;
  std::vector<tk_row_ops> Ops;
  std::vector<tk_row_terms> Terms;
  std::vector<tk_row_calls> Calls;
  std::vector<tk_row_call_targets> CallTargets;
  std::vector<tk_row_loops> Loops;
  std::vector<tk_row_loop_exits> LoopExits;
  std::vector<tk_row_phis> Phis;
  std::vector<tk_row_edges> Edges;
  std::vector<tk_row_updates> Updates;
  std::vector<tk_row_globals> Globals;
  std::vector<tk_row_address_taken> AddressTaken;
  std::vector<tk_row_variables> Variables;
  std::vector<tk_row_declarations> Declarations;
  std::vector<tk_row_options> Options;
  std::vector<tk_row_causes> Causes;
  std::vector<tk_row_update_parts> UpdateParts;
  std::vector<tk_row_loop_fates> LoopFates;
  std::vector<tk_row_variable_updates> VariableUpdates;
  std::vector<tk_row_types> Types;
  std::vector<tk_row_members> Members;
  std::vector<tk_row_typed> Typed;
  std::vector<tk_row_lines> Lines;
  std::string Folder; // the compilation folder

private:
  std::vector<char> Strings;
  llvm::StringMap<uint32_t> StringOffsets;
};

} // namespace tracekit

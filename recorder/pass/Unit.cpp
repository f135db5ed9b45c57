// Unit.cpp: serialises the image tables.
#include "Unit.h"

#include <cstring>

namespace tracekit {

uint32_t Unit::string(llvm::StringRef Text) {
  if (Text.empty())
    return 0;
  auto [Entry, New] = StringOffsets.try_emplace(Text, Strings.size());
  if (New) {
    Strings.insert(Strings.end(), Text.begin(), Text.end());
    Strings.push_back('\0');
  }
  return Entry->second;
}

namespace {

/// Appends tables to a unit's bytes and enters them into the directory that stands after the header.
class Serializer {
public:
  explicit Serializer(uint32_t Tables) : Bytes(sizeof(tk_unit) + Tables * sizeof(tk_unit_table), '\0') {
    Header.tables = Tables;
  }

  template <typename RowsType> void append(tk_table Id, const RowsType &Rows) {
    using RowType = typename RowsType::value_type;
    tk_unit_table Entry = {uint32_t(Id), sizeof(RowType), Rows.size(), Bytes.size()};
    std::memcpy(&Bytes[sizeof(tk_unit) + Id * sizeof(tk_unit_table)], &Entry, sizeof(Entry));
    if (!Rows.empty())
      Bytes.append(reinterpret_cast<const char *>(Rows.data()), Rows.size() * sizeof(RowType));
    Bytes.resize((Bytes.size() + 7) & ~size_t(7), '\0');
  }

  std::string finish() {
    std::memcpy(Header.magic, TK_UNIT_MAGIC, sizeof(Header.magic));
    Header.version = TK_UNIT_VERSION;
    Header.bytes = Bytes.size();
    std::memcpy(&Bytes[0], &Header, sizeof(Header));
    return std::move(Bytes);
  }

private:
  std::string Bytes;
  tk_unit Header = {};
};

} // namespace

std::string Unit::bytes() const {
  Serializer Out(TK_TABLE_counters); // all tables before that one, which imported traces alone have
  Out.append(TK_TABLE_strings, Strings);
  Out.append(TK_TABLE_unit, Self);
  Out.append(TK_TABLE_sources, Sources);
  Out.append(TK_TABLE_locations, Locations);
  Out.append(TK_TABLE_functions, Functions);
  Out.append(TK_TABLE_paths, Paths);
  Out.append(TK_TABLE_path_blocks, PathBlocks);
  Out.append(TK_TABLE_blocks, Blocks);
  Out.append(TK_TABLE_ops, Ops);
  Out.append(TK_TABLE_terms, Terms);
  Out.append(TK_TABLE_calls, Calls);
  Out.append(TK_TABLE_call_targets, CallTargets);
  Out.append(TK_TABLE_loops, Loops);
  Out.append(TK_TABLE_loop_exits, LoopExits);
  Out.append(TK_TABLE_phis, Phis);
  Out.append(TK_TABLE_edges, Edges);
  Out.append(TK_TABLE_updates, Updates);
  Out.append(TK_TABLE_globals, Globals);
  Out.append(TK_TABLE_address_taken, AddressTaken);
  Out.append(TK_TABLE_variables, Variables);
  Out.append(TK_TABLE_declarations, Declarations);
  Out.append(TK_TABLE_options, Options);
  Out.append(TK_TABLE_causes, Causes);
  Out.append(TK_TABLE_update_parts, UpdateParts);
  Out.append(TK_TABLE_loop_fates, LoopFates);
  Out.append(TK_TABLE_variable_updates, VariableUpdates);
  Out.append(TK_TABLE_types, Types);
  Out.append(TK_TABLE_members, Members);
  Out.append(TK_TABLE_typed, Typed);
  Out.append(TK_TABLE_lines, Lines);
  Out.append(TK_TABLE_folder, Folder); // the last one: the unit's hash is over the bytes before it
  return Out.finish();
}

} // namespace tracekit

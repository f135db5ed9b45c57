// SourceMap.h: debug information -> rows of `sources` and `locations`.
#pragma once

#include "Unit.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DebugLoc.h"

namespace tracekit {

class SourceMap {
public:
  explicit SourceMap(Unit &U) : U(U) {}

  /// The row of `sources` of a file. A relative path starts from the unit's folder.
  Row source(llvm::StringRef Path, llvm::StringRef MD5 = "");
  Row source(const llvm::DIFile *File);

  /// The row of `locations`, with the chain of calls it was inlined through; TK_NONE without debug information.
  Row location(const llvm::DILocation *Location);
  Row location(const llvm::DebugLoc &Location) { return this->location(Location.get()); }

  /// The location of a declaration: of a function, or of a variable inside `Function` (null: of a global one).
  Row declaration(const llvm::DIFile *File, unsigned Line, const llvm::DISubprogram *Function);

private:
  /// The path as the compiler was given it.
  llvm::SmallString<256> path(const llvm::DIFile &File) const;
  uint32_t functionName(const llvm::DISubprogram *Function);

  Unit &U;
  llvm::StringMap<Row> SourceRows;
  llvm::DenseMap<const llvm::DILocation *, Row> LocationRows;
  llvm::DenseMap<const llvm::DISubprogram *, uint32_t> FunctionNames;
};

} // namespace tracekit

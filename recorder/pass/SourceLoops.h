// SourceLoops.h: what each loop does to variables as the source has it, before any optimisation.
//
// A directive is put into the source. What the optimiser has promoted, sunk or deleted is still there.
#pragma once

#include "Pointees.h"
#include "SourceAccesses.h"
#include "SourceUpdates.h"
#include "Structures.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/Module.h"

#include <string>
#include <utility>
#include <vector>

namespace tracekit {

/// A variable from outside a loop that its text, or a function of this unit called there, assigns; or memory behind a
/// pointer, always the same in one invocation, that its text assigns.
struct SourceVariable {
  std::string Name;
  const llvm::DIVariable *Declared; // null of a global one that is declared only, and of memory behind a pointer
  uint32_t Flags;                   // TK_VARIABLE_*
  llvm::SmallVector<SourceStore, 2> Stores; // of memory behind a pointer: where it is assigned
  std::optional<SourceUpdate> Update;       // if an iteration may read it before it assigns it
};

struct SourceLoop {
  /// Whether a place of the same function lies in its text.
  bool holds(const llvm::DILocation &At) const;

  const llvm::DILocation *Start = nullptr;
  std::pair<unsigned, unsigned> End; // line and column
  bool CopiesMemory = false;         // by memset, memcpy or memmove, perhaps among other things
  bool IsCanonical = false;          // one that OpenMP accepts: one counter, one test, one step, no other way out
  bool HasPragma = false;            // a pragma about loops stands before it
  bool IsConcurrent = false;         // a directive of OpenMP lets its iterations run in any order
  bool IsConstexpr = false;          // in a constexpr function; in Fortran a pure procedure, or DO CONCURRENT
  bool HasWordMacro = false;         // a macro of its file has the name of a word of directives
  bool UsesBinding = false;          // a structured binding that is declared outside
  bool UsesThreadLocal = false;      // in its text, or in a function of the module that is called there
  bool IsBoundComputed = false;      // through temporaries, from what the loop's text does not assign
  std::vector<SourceVariable> Variables;
  llvm::SmallVector<const llvm::DILocalVariable *, 1> Unset; // what its body declares, and may read before it sets it
  /// Line and column of the branches that leave it otherwise than `break` does: by `return`, or for code further on.
  std::vector<std::pair<unsigned, unsigned>> Escapes;
};

/// The loops of a module as the front end has written it, by their places in the source.
class SourceLoops {
public:
  /// Looks at a module at the beginning of the pipeline, and forgets the one before.
  void look(llvm::Module &M, llvm::function_ref<const llvm::TargetLibraryInfo &(llvm::Function &)> Library);

  /// Whether `M` is the module that was looked at.
  bool knows(const llvm::Module &M) const { return Looked == M.getModuleIdentifier() && !Looked.empty(); }

  /// The loop that begins at `Start`; null if there is none.
  const SourceLoop *find(const llvm::DILocation *Start) const;

  /// Those of a function, which may be a copy or an instance of a template; outer ones first.
  llvm::ArrayRef<const SourceLoop *> of(const llvm::DISubprogram &Function) const;

  /// All of them, function by function, outer ones first. Of several at one place, which come from a macro, one.
  llvm::ArrayRef<const SourceLoop *> inOrder() const { return Order; }

  SourceAccesses Accesses;
  SourceMembers Members;

private:
  std::string Looked;
  llvm::StringMap<SourceLoop> Loops;
  std::vector<const SourceLoop *> Order;
  llvm::StringMap<llvm::SmallVector<const SourceLoop *, 4>> ByFunction;
  mutable llvm::DenseMap<const llvm::DISubprogram *, llvm::ArrayRef<const SourceLoop *>> BySubprogram; // found so far
};

/// Whether two places lie in one copy of a function.
bool areOneCopy(const llvm::DILocation &A, const llvm::DILocation &B);

} // namespace tracekit

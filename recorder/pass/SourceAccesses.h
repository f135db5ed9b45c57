// SourceAccesses.h: where the source gets to memory through pointers, before any optimisation.
//
// Inlined into its caller, `*to += x` of a function is an access to the variable whose address was given. A clause that
// names that variable does not reach it. Nor where clang has written the variable for a reference to it.
#pragma once

#include "SourceText.h"
#include "Touches.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/DebugInfoMetadata.h"

namespace tracekit {

class SourceAccesses {
public:
  void look(llvm::Function &F, const Touches &T);
  void look(const llvm::GlobalVariable &G);

  /// Whether an access at `At`, which may be null, that the optimiser knows to lie in the variable called `Name` may
  /// get there through a pointer in the source.
  bool mayBeByPointer(const llvm::DILocation *At, llvm::StringRef Name) const;

  /// Whether the source has another name for the global variable `Name` where it accesses it at `At`, which may be
  /// null.
  bool isRenamed(const llvm::DILocation *At, llvm::StringRef Name) const;

  /// The reference or dummy argument by whose name, and no other, the source gets to what is accessed at `At`, which
  /// may be null, by `Address`; "" if there is none, or that is not known.
  llvm::StringRef reference(const llvm::DILocation *At, const llvm::Value &Address) const;

private:
  /// The accesses at one place of which some go through pointers.
  struct Place {
    bool IsMixed = true;     // it is not known which of them do
    llvm::StringSet<> Named; // otherwise it is one call: the variables that it is given
  };

  void look(const llvm::Instruction &I);
  void lookForReferences(const llvm::DILocation &At, llvm::ArrayRef<const llvm::Value *> Addresses);
  void enter(const llvm::Value &Variable, bool IsByName);

  SourceText Text;
  llvm::StringMap<Place> Places;
  llvm::StringMap<bool> ByNameOnly; // of variables: no variable of that name has its address anywhere but in accesses
  llvm::StringSet<> Renamed;        // places with names
  llvm::StringSet<> Addressed;      // names of variables that pointers may lead to
  llvm::StringMap<llvm::StringRef> References; // places at which all that is accessed is behind one; "" of the others
};

} // namespace tracekit

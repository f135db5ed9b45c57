// ThreadPrivate.cpp: see ThreadPrivate.h.
#include "ThreadPrivate.h"

#include "Compat.h"

#include "llvm/ADT/SetVector.h"

using namespace llvm;

namespace tracekit {

static constexpr StringLiteral ThreadPrivateMark = "tracekit-threadprivate";

/// The files of a module's functions and variables, that of the compilation first.
static SmallSetVector<const DIFile *, 16> filesOf(const Module &M) {
  SmallSetVector<const DIFile *, 16> Files;
  auto Add = [&](const DIFile *File) {
    if (File)
      Files.insert(File);
  };
  for (const DICompileUnit *Unit : M.debug_compile_units())
    Add(Unit->getFile());
  for (const Function &F : M)
    if (const DISubprogram *Of = F.getSubprogram())
      Add(Of->getFile());
  for (const GlobalVariable &G : M.globals()) {
    SmallVector<DIGlobalVariableExpression *, 1> Declared;
    G.getDebugInfo(Declared);
    for (const DIGlobalVariableExpression *Each : Declared)
      Add(Each->getVariable()->getFile());
  }
  return Files;
}

/// The names that a directive may give a variable: that of the source, of a module of Fortran (`_QMshapesEcount`) or
/// of a common block (`block_`).
static SmallVector<StringRef, 4> namesOf(const GlobalVariable &G) {
  SmallVector<StringRef, 4> Names = {G.getName()};
  SmallVector<DIGlobalVariableExpression *, 1> Declared;
  G.getDebugInfo(Declared);
  for (const DIGlobalVariableExpression *Each : Declared)
    Names.push_back(Each->getVariable()->getName());
  if (startsWith(G.getName(), "_Q"))
    Names.push_back(G.getName().rsplit('E').second);
  else if (G.getName().ends_with("_"))
    Names.push_back(G.getName().drop_back());
  return Names;
}

void markThreadPrivate(Module &M, SourceText &Sources) {
  StringSet<> Named;
  for (const DIFile *File : filesOf(M))
    Sources.addThreadPrivate(
        *File, any_of(M.debug_compile_units(), [&](auto *Unit) { return Unit->getFile() == File; }), Named);
  if (!Named.empty())
    for (GlobalVariable &G : M.globals())
      if (any_of(namesOf(G), [&](StringRef Name) { return Named.contains(Name); }))
        G.addAttribute(ThreadPrivateMark);
}

bool isPerThread(const GlobalVariable &G) { return G.isThreadLocal() || G.hasAttribute(ThreadPrivateMark); }

} // namespace tracekit

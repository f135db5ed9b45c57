// Clocks.cpp: see Clocks.h.
#include "Clocks.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace tracekit {

static const Function *externalCallee(const CallBase &Call) {
  auto *Callee = dyn_cast<Function>(Call.getCalledOperand()->stripPointerCastsAndAliases());
  return Callee && Callee->isDeclaration() ? Callee : nullptr;
}

/// Clocks that only return the time: of C, OpenMP, MPI, C++ (libstdc++, libc++) and flang's runtime.
static bool onlyReturnsTime(StringRef Name) {
  return StringSwitch<bool>(Name)
      .Cases("clock", "omp_get_wtime", "omp_get_wtime_", "omp_get_wtick", "omp_get_wtick_", true)
      .Cases("MPI_Wtime", "MPI_Wtick", "mpi_wtime_", "mpi_wtick_", true)
      .Cases("_ZNSt6chrono3_V212steady_clock3nowEv", "_ZNSt6chrono3_V212system_clock3nowEv", true)
      .Cases("_ZNSt3__16chrono12steady_clock3nowEv", "_ZNSt3__16chrono12system_clock3nowEv", true)
      .Case("_FortranACpuTime", true)
      .Default(false);
}

static constexpr unsigned NoPlace = ~0U;

/// The argument that says where the time is stored.
static unsigned placeArgument(StringRef Name) {
  return StringSwitch<unsigned>(Name)
      .Cases("time", "gettimeofday", "times", 0)
      .Cases("clock_gettime", "getrusage", 1)
      .Default(NoPlace);
}

/// How much is stored there: of struct timespec and struct timeval, but for those named.
static unsigned placeBytes(StringRef Name) {
  return StringSwitch<unsigned>(Name).Case("time", 8).Case("times", 32).Case("getrusage", 144).Default(16);
}

/// Null, also as the number that a program hands over which does not declare the function: `time(0)`.
static bool isNull(const Value *Given) {
  auto *Known = dyn_cast<Constant>(Given);
  return Known && Known->isNullValue();
}

/// Memory that is there for sure: a store to a place that a caller handed over, null perhaps, cannot be promised.
static bool isSurelyThere(const Value *Place) { return isa<AllocaInst, GlobalVariable>(getUnderlyingObject(Place)); }

bool readsClock(const CallBase &Call) {
  const Function *Callee = externalCallee(Call);
  if (!Callee)
    return false;
  if (onlyReturnsTime(Callee->getName()))
    return true;
  unsigned Index = placeArgument(Callee->getName());
  if (Index >= Call.arg_size() || Callee->getParent()->getDataLayout().getPointerSize() != 8)
    return false;
  for (unsigned Other = 0; Other < Call.arg_size(); ++Other) {
    const Value *Given = Call.getArgOperand(Other);
    if (isNull(Given) || (Other != Index && !Given->getType()->isPointerTy()))
      continue;
    if (Other != Index || !isSurelyThere(Given)) // the second one of gettimeofday is a time zone
      return false;
  }
  return true;
}

StoredTime storedTime(const CallBase &Call) {
  const Function *Callee = readsClock(Call) ? externalCallee(Call) : nullptr;
  unsigned Index = Callee ? placeArgument(Callee->getName()) : NoPlace;
  if (Index >= Call.arg_size() || isNull(Call.getArgOperand(Index)))
    return {nullptr, 0};
  return {Call.getArgOperand(Index), placeBytes(Callee->getName())};
}

} // namespace tracekit

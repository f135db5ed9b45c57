// Plugin.cpp: the pass and its registration as a plugin of the new pass manager.
//
// The environment variable TRACEKIT_PASS holds options, "key=value" separated by commas:
//   at=source   instrument where the optimisation pipeline begins, after simplification and inlining (default)
//   at=machine  instrument at its end
//   record=paths   one record per path, addresses only where they cannot be derived (default)
//   record=blocks  one record per block, every address in place
//   record=both    as paths, and beside it what record=blocks would record, for a reader to compare
//   values=loads, stores, all  the values that they move, too
//   pointers=1     where pointers come from, too
//   threads=1      the order of atomic operations, too
//   intercept=F;G  calls of these functions, with arguments and results
//   allocators=F;G allocators of the program's own, as in Allocators.h
//   windows=1      activations are kept in memory, too, so that a window may open in the middle of one
#include "Addresses.h"
#include "AllocatorPointers.h"
#include "Allocators.h"
#include "Atomics.h"
#include "Attributes.h"
#include "Compat.h"
#include "Deferral.h"
#include "Dependences.h"
#include "Descriptors.h"
#include "DoHead.h"
#include "Emit.h"
#include "Fates.h"
#include "LibraryCalls.h"
#include "LoopDoors.h"
#include "Loops.h"
#include "Names.h"
#include "Probes.h"
#include "PureCalls.h"
#include "Resumes.h"
#include "SourceLoops.h"
#include "TargetVectors.h"
#include "Twins.h"
#include "Uses.h"

#include "llvm/Analysis/AssumptionCache.h"
#include "llvm/Analysis/BasicAliasAnalysis.h"
#include "llvm/Analysis/GlobalsModRef.h"
#include "llvm/Analysis/PostDominators.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/TypeBasedAliasAnalysis.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Transforms/Coroutines/CoroCleanup.h"
#include "llvm/Transforms/Coroutines/CoroConditionalWrapper.h"
#include "llvm/Transforms/Coroutines/CoroEarly.h"
#include "llvm/Transforms/Coroutines/CoroSplit.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/Utils/BuildLibCalls.h"

#include <cstdlib>

using namespace llvm;

namespace tracekit {
namespace {

enum class Record { Paths, Blocks, Both };

struct Options {
  bool AtMachine = false;
  bool Windows = false;
  Record What = Record::Paths;
  Extras Asked;
  bool Threads = false;
  std::vector<std::string> Intercepted;
  AllocatorNames Allocators;
};

[[noreturn]] void refuse(const Twine &Message) { report_fatal_error("TRACEKIT_PASS: " + Message, false); }

Options readOptions() {
  Options O;
  const char *Text = std::getenv("TRACEKIT_PASS");
  SmallVector<StringRef, 4> Settings;
  StringRef(Text ? Text : "").split(Settings, ',', -1, false);
  for (StringRef Setting : Settings) {
    auto [Key, Value] = Setting.split('=');
    if (Key == "at" && (Value == "source" || Value == "machine"))
      O.AtMachine = Value == "machine";
    else if (Key == "record" && (Value == "paths" || Value == "blocks" || Value == "both"))
      O.What = Value == "paths" ? Record::Paths : Value == "blocks" ? Record::Blocks : Record::Both;
    else if (Key == "values" && (Value == "loads" || Value == "stores" || Value == "all"))
      O.Asked.Loads = Value != "stores", O.Asked.Stores = Value != "loads";
    else if (Key == "pointers" && Value == "1")
      O.Asked.Pointers = true;
    else if ((Key == "intercept" || Key == "allocators") && !Value.empty()) {
      SmallVector<StringRef, 4> Names;
      Value.split(Names, ';', -1, false);
      (Key == "intercept" ? O.Intercepted : O.Allocators).assign(Names.begin(), Names.end());
    } else if (Key == "threads" && Value == "1")
      O.Threads = true;
    else if (Key == "windows" && Value == "1")
      O.Windows = true;
    else
      refuse("no such option: " + Setting);
  }
  return O;
}

class TracekitPass : public PassInfoMixin<TracekitPass> {
public:
  TracekitPass(Options O, std::shared_ptr<const SourceLoops> InSource) : O(O), InSource(std::move(InSource)) {}
  static bool isRequired() { return true; }
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM);

private:
  Options O;
  std::shared_ptr<const SourceLoops> InSource;
};

/// Before the first pass that changes anything: keeps names, and looks at the loops of the source.
class SourcePass : public PassInfoMixin<SourcePass> {
public:
  SourcePass(std::shared_ptr<SourceLoops> InSource, const Options &O) : InSource(std::move(InSource)), O(O) {}
  static bool isRequired() { return true; }
  PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM) {
    keepLinkageNames(M);
    bool IsChanged = surroundAllocators(M, O.Allocators);
    markPureFunctions(M);
    IsChanged |= stepCounters(M);
    auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
    InSource->look(M,
                   [&](Function &F) -> const TargetLibraryInfo & { return FAM.getResult<TargetLibraryAnalysis>(F); });
    if (!O.Intercepted.empty())
      addProbes(M, O.Intercepted);
    return IsChanged || !O.Intercepted.empty() ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }

private:
  std::shared_ptr<SourceLoops> InSource;
  Options O;
};

/// One function after the other: prepared, described, instrumented.
class Instrumenter {
public:
  Instrumenter(Module &M, Options O, const SourceLoops *InSource)
      : M(M), O(O), InSource(InSource), Sources(U), Types(U, Sources), Calls(U), Out(M, U, Sources, Types), R(M) {}

  void describeUnit() {
    StringRef Producer = "LLVM " LLVM_VERSION_STRING;
    const DICompileUnit *Debug = M.debug_compile_units().empty() ? nullptr : *M.debug_compile_units_begin();
    U.Folder = Debug ? Debug->getDirectory().str() : "";
    Row Source = Debug ? Sources.source(Debug->getFile()) : Sources.source(M.getSourceFileName());
    U.Self.push_back({U.Sources[Source].path, U.string(Debug ? Debug->getProducer() : Producer),
                      U.string(targetTriple(M)), U.string(O.AtMachine ? "machine" : "source")});
    describeOptions();
    Out.addGlobals();
    // An indirect call may reach a function through a table that stands in another file.
    for (const Function &F : M)
      if (F.isDeclarationForLinker() && !F.isIntrinsic() && F.hasAddressTaken())
        U.AddressTaken.push_back({U.string(F.getName())});
  }

  void describeFates() {
    if (InSource)
      tracekit::describeFates(M, *InSource, U, Sources);
  }

  void instrument(Function &F, const TargetLibraryInfo &TLI, TypeBasedAAResult &ByType) {
    if (O.Threads)
      orderAtomics(F);
    generaliseVectors(F);
    nameAllocators(F);
    AllocaInst *Frame = prepare(F);
    DominatorTree DT(F);
    LoopInfo LI(DT);
    normalise(F, TLI, ByType, DT, LI);
    Classifier Classify(F, TLI, DT, O.Asked);
    SegmentedFunction S = segments(F, Frame, Classify, DT, LI, O.What == Record::Both);
    AssumptionCache AC(F);
    ScalarEvolution SE(F, const_cast<TargetLibraryInfo &>(TLI), AC, DT, LI);
    std::vector<RunLoop> Runs = deriveWords(F, S, DT, LI, SE);
    bool HasTwin = O.Windows && Twin::isPossible(S);
    SmallVector<unsigned, 4> Doors;
    if (HasTwin)
      for (const LoopDoor &Of : loopDoors(S, DT, LI))
        Doors.push_back(S.OfBlock.lookup(Of.At).first);
    Regions Paths(S, std::move(Runs), O.What == Record::Blocks || F.hasOptNone(), O.What == Record::Both, Doors);
    PostDominatorTree PDT(F);
    FunctionRows Rows = describeFunction(S, Paths, {LI, DT, PDT, SE}, TLI);
    Resumes Keep;
    if (O.Windows)
      Keep = describeResumes(S, Paths, Rows, LI, U);
    if (HasTwin)
      deferActivations(S, Paths, LI, Keep);
    GlobalVariable *Ids = Out.addFunction(F, Rows.Function, U.Functions[Rows.Function].paths);
    std::optional<Twin> Other;
    if (HasTwin) {
      Other.emplace(S, Paths, Keep, DT, LI);
      Other->split(Paths);
      Keep.Armed = Out.addArmed(F);
    }
    if (O.Windows)
      addLayout(F, Ids, Keep);
    emit(S, Paths, R, Ids, O.Windows ? &Keep : nullptr, Other ? &*Other : nullptr);
  }

  void finish() { Out.finish(); }

private:
  /// Gives loops preheaders, merges one block each, and loads again what clang has kept in registers, where it
  /// optimises.
  void normalise(Function &F, const TargetLibraryInfo &TLI, TypeBasedAAResult &ByType, DominatorTree &DT,
                 LoopInfo &LI) {
    if (F.hasOptNone())
      return;
    givePreheaders(DT, LI);
    joinMerges(DT, LI);
    if (O.AtMachine)
      return;
    AssumptionCache AC(F);
    BasicAAResult Basic(M.getDataLayout(), F, TLI, AC, &DT);
    AAResults AA(TLI);
    AA.addAAResult(Basic);
    AA.addAAResult(ByType);
    loadAgain(LI, AA);
  }

  /// Decides which addresses are words of the record and which follow from others; returns the loops that are runs.
  std::vector<RunLoop> deriveWords(Function &F, SegmentedFunction &S, DominatorTree &DT, LoopInfo &LI,
                                   ScalarEvolution &SE) {
    std::vector<RunLoop> Runs;
    if (O.What != Record::Blocks) {
      deriveAddresses(S, DT, LI, SE, Out.GlobalRows, O.What == Record::Both);
      if (!F.hasOptNone())
        Runs = findRuns(S, LI, SE);
    }
    if (O.What == Record::Both)
      addGroundTruth(S);
    countWords(S);
    return Runs;
  }

  /// Puts what an analysis has to know of the function into the unit.
  FunctionRows describeFunction(SegmentedFunction &S, Regions &Paths, const FunctionShape &Shape,
                                const TargetLibraryInfo &TLI) {
    FunctionRows Rows = describe(S, Paths, U, Sources, Calls, TLI, InSource, Types);
    if (!Shape.LI.empty()) {
      describeLoops(S, Rows, Shape, InSource, U, Sources);
      describeDependences(S, Rows, Shape.LI, Shape.PDT, U);
    } else {
      noLoops(Rows);
    }
    describeUpdates(S, Rows, Shape, U); // functions that loops call have them, too
    describeTerms(S, Rows, U);
    describeUses(S, Rows, Shape.LI, U);
    return Rows;
  }

  /// Adds the table by which a window opens in the middle of an activation.
  void addLayout(Function &F, GlobalVariable *Ids, Resumes &Keep) {
    SmallVector<uint32_t, 8> Numbers;
    for (const BasicBlock *Header : Keep.Counted)
      Numbers.push_back(Keep.LoopOf.lookup(Header));
    Keep.Layout =
        Out.addLayout(F, Ids, {Keep.Registers, uint32_t(Numbers.size()), Keep.Objects, 0}, Numbers, Keep.Armed);
  }

  void describeOptions() {
    const Extras &Asked = O.Asked;
    if (Asked.Pointers)
      U.Options.push_back({U.string("pointers=1")});
    if (O.Threads)
      U.Options.push_back({U.string("threads=1")});
    if (O.Windows)
      U.Options.push_back({U.string("windows=1")});
    for (const Function &F : M)
      if (StringRef Allocator = allocatorText(F); !Allocator.empty())
        U.Options.push_back({U.string(("allocator=" + Allocator).str())});
    if (Asked.Loads || Asked.Stores)
      U.Options.push_back({U.string(!Asked.Stores ? "values=loads" : !Asked.Loads ? "values=stores" : "values=all")});
  }

  void noLoops(const FunctionRows &Rows) {
    U.Functions[Rows.Function].first_loop = U.Loops.size();
    U.Functions[Rows.Function].first_edge = U.Edges.size();
  }

  Module &M;
  Options O;
  const SourceLoops *InSource;
  Unit U;
  SourceMap Sources;
  TypeRows Types;
  CallSites Calls;
  Descriptors Out;
  Runtime R;
};

PreservedAnalyses TracekitPass::run(Module &M, ModuleAnalysisManager &MAM) {
  // .ll and .bc files may have been through a pipeline with this pass before.
  if (M.getModuleFlag("tracekit"))
    return PreservedAnalyses::all();
  M.addModuleFlag(Module::Max, "tracekit", 1);

  markPureFunctions(M);
  auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();
  auto Library = [&](Function &F) -> const TargetLibraryInfo & { return FAM.getResult<TargetLibraryAnalysis>(F); };
  std::vector<Function *> Chosen;
  for (Function &F : M) {
    if (isInstrumented(F, Library(F)))
      Chosen.push_back(&F);
    else if (F.isDeclaration() && !F.isIntrinsic()) // at -O0 nobody has looked at the library's functions
      inferNonMandatoryLibFuncAttrs(F, Library(F));
  }
  DenseSet<const Function *> MayEnter(Chosen.begin(), Chosen.end());
  for (Function *F : Chosen)
    if (F->hasOptNone())
      inlineLibraryCalls(*F, [&](const Function &Callee) { return MayEnter.contains(&Callee); });
  Instrumenter I(M, O, InSource && InSource->knows(M) ? InSource.get() : nullptr);
  I.describeUnit();
  I.describeFates();
  for (Function *F : Chosen)
    I.instrument(*F, Library(*F), FAM.getResult<TypeBasedAA>(*F));
  I.finish();
  dropPureMarks(M);
  dropBrokenAttributes(M);
  // What is known of functions from before they wrote records would outlive `none`.
  PreservedAnalyses Kept = PreservedAnalyses::none();
  Kept.abandon<GlobalsAA>();
  return Kept;
}

void addPass(ModulePassManager &MPM, OptimizationLevel Level, Options O, std::shared_ptr<const SourceLoops> InSource) {
  if (Level == OptimizationLevel::O0) { // coroutines are split after this point then, and before it otherwise
    ModulePassManager Coroutines;
    Coroutines.addPass(CoroEarlyPass());
    CGSCCPassManager Split;
    Split.addPass(CoroSplitPass());
    Coroutines.addPass(createModuleToPostOrderCGSCCPassAdaptor(std::move(Split)));
    Coroutines.addPass(CoroCleanupPass());
    MPM.addPass(CoroConditionalWrapper(std::move(Coroutines)));
  }
  MPM.addPass(TracekitPass(O, std::move(InSource)));
  if (Level != OptimizationLevel::O0)
    MPM.addPass(RequireAnalysisPass<GlobalsAA, Module>());
}

void registerCallbacks(PassBuilder &PB) {
  Options O = readOptions();
  auto InSource = std::make_shared<SourceLoops>();
  auto Add = [O, InSource](ModulePassManager &MPM, OptimizationLevel Level) { addPass(MPM, Level, O, InSource); };
  PB.registerPipelineStartEPCallback(
      [InSource, O](ModulePassManager &MPM, OptimizationLevel) { MPM.addPass(SourcePass(InSource, O)); });
  if (O.AtMachine)
    atOptimizerLast(PB, Add);
  else
    atOptimizerEarly(PB, Add);
  atOptimizerLast(PB, [](ModulePassManager &MPM, OptimizationLevel Level) {
    if (Level != OptimizationLevel::O0)
      MPM.addPass(GlobalDCEPass()); // the pipeline's own comes behind this point
    MPM.addPass(RowsOfTheDead());
  });
  PB.registerPipelineParsingCallback(
      [O](StringRef Name, ModulePassManager &MPM, ArrayRef<PassBuilder::PipelineElement>) {
        if (Name != "tracekit")
          return false;
        MPM.addPass(TracekitPass(O, nullptr));
        return true;
      });
}

} // namespace
} // namespace tracekit

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "tracekit", "1", tracekit::registerCallbacks};
}

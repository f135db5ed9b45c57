// SourceText.h: which names stand in the text of a statement, and how a variable is declared there.
//
// clang itself writes the variable for a reference or a constant pointer that is bound to it (`int &count = total;`,
// `static int *const begins = initial;`): nothing in the module says then that the source has another name for it.
#pragma once

#include "FortranText.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/DebugInfoMetadata.h"

#include <string>
#include <vector>

namespace tracekit {

/// The source files that a module's debug information names, as far as they can be read.
class SourceText {
public:
  /// Whether the statement around `At` has the identifier `Name`, not behind `::`, `.` or `->`, by itself or through
  /// macros of its file or of the files that this one includes by "". True where there is no text to look at.
  bool hasName(const llvm::DILocation &At, llvm::StringRef Name);

  /// Whether what stands there is a `for`, or a macro that begins with one; in Fortran a DO construct with a counter.
  /// Yes where there is no text to look at.
  bool isFor(const llvm::DILocation &At);

  /// Whether the test of the `for` that stands there casts its counter, `(size_t)i < n`, which compilers do not take
  /// below a directive. No where there is no text, and where a macro stands there.
  bool castsInTest(const llvm::DILocation &At, llvm::StringRef Counter);

  /// Whether a macro of the file, or of files that it includes by "", has the name of a word of directives for loops:
  /// compilers replace it there (`#define private static`). No where there is no text.
  bool replacesWords(const llvm::DIFile &Of);

  /// Whether a DO CONCURRENT construct of Fortran begins there. No where there is no text.
  bool isDoConcurrent(const llvm::DILocation &At);

  /// Whether a pragma about loops stands before the statement that begins there, such as `#pragma unroll`; in Fortran
  /// any directive, also one of OpenMP. No where there is no text.
  bool hasLoopPragma(const llvm::DILocation &At);

  /// Whether what stands there is a directive of OpenMP by which iterations may run in any order: `loop`, or one with
  /// `order(concurrent)`. No where there is no text, and in Fortran.
  bool isConcurrent(const llvm::DILocation &At);

  /// Whether the text from `Begin` to a line and column (its beginning, if that is a word) declares variables that are
  /// defined elsewhere: `extern int count;`, `using space::count;`. No where there is no text.
  bool hasDeclaration(const llvm::DILocation &Begin, std::pair<unsigned, unsigned> End);

  /// Whether a function is declared `constexpr` or `consteval`, by a macro whose name says so, too; in Fortran `pure`
  /// or `elemental`. No where there is no text.
  bool isConstexpr(const llvm::DISubprogram &Of);

  /// Whether a variable is a part of a structured binding, `auto [name, other] = ...`. No where there is no text.
  bool isInBinding(const llvm::DILocalVariable &V);

  /// Adds the names in the `threadprivate` directives of a file, and of those that it includes by "" (in Fortran of its
  /// own). `IsCompiled`: not merely included; only then may it be that nothing but what it includes has directives.
  void addThreadPrivate(const llvm::DIFile &Of, bool IsCompiled, llvm::StringSet<> &Names);

private:
  struct File {
    std::string Text; // comments, literals and directives are spaces
    std::vector<size_t> Lines;
    std::vector<size_t> LoopPragmas;                   // where each ends
    std::vector<std::pair<size_t, size_t>> Concurrent; // from where to where such directives of OpenMP stand
    llvm::StringMap<std::string> Macros;               // what each is replaced by
    llvm::StringSet<> ThreadPrivate;                   // the names in such directives
    FortranForm Form = FortranForm::None;
  };

  const File &read(const llvm::DIFile &Of);
  void addMacros(llvm::StringRef Path, File &To, llvm::StringSet<> &Seen, unsigned Depth);
  static size_t offsetOf(const File &In, unsigned Line, unsigned Column);
  static size_t offsetOf(const File &In, const llvm::DILocation &At) {
    return offsetOf(In, At.getLine(), At.getColumn());
  }
  bool leadsTo(const File &In, llvm::StringRef Text, llvm::StringRef Name, llvm::StringSet<> &Expanded) const;

  llvm::StringMap<File> Files;
};

} // namespace tracekit

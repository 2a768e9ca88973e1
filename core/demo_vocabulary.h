// The words that the demo model knows.
#pragma once

#include <span>

namespace attend {

// What a word is; the value is the index of its feature.
enum class WordKind {
  kNoun,     // "I", "you" and "we" too: they name somebody and stand for no other word
  kPronoun,  // stands for a noun
  kVerb,
  kDeterminer,
  kAdjective,
  kAdverb,
  kConnective,  // begins another clause
  kPreposition,
};

// Words that share their features; 0 where they fit both.
struct WordGroup {
  WordKind kind;
  int animate;   // 1: living, or said of the living; -1: a thing, or said of things
  int feminine;  // 1: feminine; -1: masculine
  int plural;    // 1: plural; -1: singular
  const char* words;
};

std::span<const WordGroup> DemoVocabulary();

}  // namespace attend

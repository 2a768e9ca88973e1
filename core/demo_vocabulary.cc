#include "core/demo_vocabulary.h"

namespace attend {
namespace {

using enum WordKind;

constexpr WordGroup kGroups[] = {
    {kDeterminer, 0, 0, 0, "the my your our his its their some"},
    {kDeterminer, 0, 0, -1, "a an this that every one"},
    {kDeterminer, 0, 0, 1, "these those many two"},
    {kPronoun, 1, 0, -1, "it"},
    {kPronoun, 1, -1, -1, "he him"},
    {kPronoun, 1, 1, -1, "she her"},
    {kPronoun, 1, 0, 1, "they them"},
    {kNoun, 1, 0, -1,
     "cat dog mouse bird horse fish animal child baby teacher doctor student friend"},
    {kNoun, 1, -1, -1, "man boy king father brother bob"},
    {kNoun, 1, 1, -1, "woman girl queen mother sister alice"},
    {kNoun, 1, 0, 1, "cats dogs mice birds horses animals children students friends people we"},
    {kNoun, 1, -1, 1, "men boys"},
    {kNoun, 1, 1, 1, "women girls"},
    {kNoun, 1, 0, 0, "i you"},
    {kNoun, -1, 0, -1,
     "mat house home table chair ball book tree car door bed box street garden food milk water "
     "apple hat stone river letter city bone window"},
    {kNoun, -1, 0, 1, "books trees houses apples stones letters"},
    {kVerb, 1, 0, 0,
     "sat slept ran ate drank saw chased loved liked wanted gave took read wrote said asked "
     "walked jumped played found caught went cross crossed cried laughed barked met helped "
     "thanked"},
    {kVerb, 1, 0, -1,
     "sits sleeps runs eats sees chases loves likes wants gives says walks jumps plays"},
    {kVerb, 1, 0, 1, "sit sleep run eat see chase love like want give say walk jump play"},
    {kVerb, 0, 0, -1, "is was has"},
    {kVerb, 0, 0, 1, "are were have"},
    {kVerb, 0, 0, 0, "had fell broke looked seemed became moved stood lay grew came stayed"},
    {kAdjective, 1, 0, 0, "tired hungry thirsty happy sad angry afraid sleepy young clever"},
    {kAdjective, -1, 0, 0, "wide soft broken empty wooden"},
    {kAdjective, 0, 0, 0,
     "big small little black white red green blue good bad new old beautiful warm cold fast "
     "slow quiet"},
    {kAdverb, 0, 0, 0,
     "down up away quickly slowly quietly happily very too always never often soon then now "
     "here there again not didn't together today"},
    {kConnective, 0, 0, 0, "because and but or so when while if until although"},
    {kPreposition, 0, 0, 0,
     "on in under at to with from by near behind into over for of after before"},
};

}  // namespace

std::span<const WordGroup> DemoVocabulary() { return kGroups; }

}  // namespace attend

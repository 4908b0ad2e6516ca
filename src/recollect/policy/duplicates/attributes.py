"""Which attribute a key names, and whether a value needs it: "Lviv" under `city` and `birthplace` is two facts, "Lives
in Lviv" under `home` and `city` is one.

A value that makes a statement by itself is the same fact under two keys if neither adds anything to it: their words
are in the statement, or only say what kind of fact it is (`role`, `work_style`). Any other word may say of whom, of
what, when or how it holds (`former_role`, `sister`, `opinion_on_rust`), and counts as a difference. A bare value is the
same fact only under another name of the same attribute (`role`, `job_title`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from recollect import text
from recollect.policy.duplicates.vocabulary import MOVABLE, grammar, verbs
from recollect.policy.duplicates.words import english_lemma


def _set(table: str) -> frozenset[str]:
    return frozenset(table.split())


# Words of a key that carry nothing.
_FILLERS = _set("""user users my their his her current currently present main the a an is are of in on at for
to as with and info information detail value about me own s general""")
# Several words for one attribute, the longest first when they overlap.
_PHRASES = """job_title=role|position_title=role|job_role=role|job_position=role|works_as=role|work_role=role
works_at=employer|works_for=employer|work_place=employer|place_of_work=employer|company_name=employer|employer_name=employer
tech_stack=stack|technology_stack=stack|technical_stack=stack|date_of_birth=birthday|birth_date=birthday|birth_day=birthday
place_of_birth=birthplace|birth_place=birthplace|born_in=birthplace|home_city=location|home_town=hometown|home_location=location
lives_in=location|based_in=location|living_in=location|place_of_residence=location|city_of_residence=location
home_address=address|street_address=address|email_address=email|mail_address=email|phone_number=phone|telephone_number=phone
mobile_number=phone|cell_phone=phone|mobile_phone=phone|full_name=name|first_name=firstname|given_name=firstname
last_name=surname|family_name=surname|time_zone=timezone|native_language=mothertongue|mother_tongue=mothertongue
first_language=mothertongue|programming_language=codelanguage|coding_language=codelanguage|coding_languages=codelanguage
programming_languages=codelanguage|spoken_language=language|spoken_languages=language|free_time=hobby|leisure_activity=hobby
dietary_preference=diet|food_preference=diet|food_preferences=diet|dietary_preferences=diet|dietary_restriction=diet|dietary_restrictions=diet|food_allergy=allergy
food_allergies=allergy|marital_status=relationshipstatus|relationship_status=relationshipstatus|side_project=sideproject
years_of_experience=experience|work_experience=experience|field_of_study=major|study_major=major|code_editor=editor
text_editor=editor|operating_system=os|date_joined=startdate|start_date=startdate"""
_WORDS = """role=job position occupation profession title jobtitle designation employer=company
workplace organization organisation firm business location=city residence town home
whereabouts birthday=dob birthdate phone=telephone mobile cellphone email=mail
stack=technology techstack hobby=pastime favorite=favourite preferred preference fave fav
opinion=view stance attitude spouse=wife husband allergy=allergen diet=eating goal=aim
objective target ambition timezone=tz os=platform child=kid children skill=ability expertise
competence salary=pay wage income age=years interest=topic hometown=homeplace school=college
university instrument=instruments pet=pets surname=lastname project=projects nickname=alias
handle=username account nationality=citizenship"""
# Keys that say that the value holds of somebody else.
_PEOPLE = _set("""mother father mom mum dad parent sister brother sibling wife husband spouse partner
girlfriend boyfriend fiance fiancee son daughter child kid baby grandmother grandfather
grandma grandpa grandparent grandson granddaughter uncle aunt cousin nephew niece friend
colleague coworker teammate boss manager lead supervisor mentor mentee student teacher
neighbor neighbour roommate flatmate landlord tenant client customer doctor dentist lawyer
accountant coach trainer dog cat pet horse family team ex in-law stepmother stepfather
godfather godmother""")
# Keys that say that it does not hold, or is only wished for; if the value says that too, the key adds nothing.
_AGAINST = _set("""dislike hate avoid fear phobia allergy weakness never not no without against opposed""")
_NEGATIVE = _set("""not never no dislike hate detest despise loathe resent avoid fear refuse distrust oppose
allergic afraid averse opposed""")
_WISHES = _set("""goal dream wish want aspiration intention ambition aim bucket plan planned future target
desired ideal""")
_WANTING = _set("""want hope wish plan aim dream intend aspire strive would learn learning""")
# Keys that say when it holds, or which of several it is.
_WHICH = (
    _set("""former previous past old ex earlier original initial first second third last next potential
possible temporary backup secondary alternative other another childhood""")
    | MOVABLE
)
# Keys that say where or of what it holds, if another word says what.
_PLACES = _set("""home work office school university summer winter holiday vacation travel abroad remote gym
car kitchen personal private professional business family company employer project
sideproject product service app client server frontend backend startup department""")
# Attributes of a person: with a word before them, they are those of somebody or something else (`anna_job`).
_OF_PERSONS = _set("""role employer location birthday birthplace phone email address name firstname surname age
school hobby nationality timezone hometown salary experience pet spouse major handle
nickname""")
# Words of keys that say what kind of fact a statement is, and nothing more.
_KINDS = _OF_PERSONS | frozenset(
    english_lemma(word)
    for word in """stack hobby favorite opinion diet allergy goal os skill interest project
sideproject instrument style habit routine communication learning language work career study
education background trait personality fact note memory thing item statement activity talk
presentation conference event upcoming summary digest format length tone method approach
workflow setup focus area field domain expertise knowledge profile bio who life lifestyle
responsibility duty industry codelanguage sleep bedtime exercise training fitness sport health
travel trip music taste food drink restriction cooking reading read article finance money
cloud infrastructure team leadership concern worry commute transport degree qualification
achievement content""".split()
)
# Keys that begin with one of these say where, when or for whom it holds.
_RELATIONS = _set("at in on for with during when after before while by from")
# Verbs that begin a statement about a person, by their base form.
_VERBS = _set("""accept achieve add admire adore advise advocate agree aim allow analyze analyse appreciate
apply argue ask aspire attend automate avoid bake believe belong bike blog boost breed brew
bring build buy call camp care carry celebrate change chair check choose climb code coach
collect commute compete complete compose consider consult consume contribute cook coordinate
count cover craft create cultivate cut cycle dance debug decide dedicate deliver deploy
depend design despise detest develop devote direct disagree discover discuss dislike
distrust dive donate doubt draw dream dress drink drive earn eat edit educate embrace enjoy
evaluate exercise expect experience experiment explain explore face farm favor favour fear
feel find finish fish fix fly focus follow forage foster found freelance garden get give go
golf grow handle hate have head heat help hike hold hope host hunt identify ignore implement
import improve instruct intend invest investigate invent jog join juggle keep knit know lack
lead lean learn leave like listen live loathe look love maintain major make manage master
mean meditate meet mentor migrate mine mistrust mix model moderate monitor mountain move
must need network observe operate oppose optimize optimise orchestrate order organize
organise oversee own paint parent participate pay perform photograph pick plan plant play
practice practise prefer prepare present preserve program promote publish pursue question
race raise rank rate read receive recommend record recycle refactor refuse relax rely
remember rent repair report represent research resent restore ride row run sail save say
scale schedule sculpt search see seek sell sew share shoot shop sing sit skate skateboard
ski skip sleep smoke snowboard solve speak specialize specialise spend sponsor stand start
stay stream stretch strive struggle study suffer suggest supervise support surf swim switch
take talk teach test think tinker track trade train transition translate travel treat trust
try tutor type understand update use value visit volunteer vote wake walk want watch wear
weave weigh welcome wish wonder work worry wrestle write""")
# Adjectives that take a preposition and so make a statement; others are recognised by their endings.
_ADJECTIVES = _set("""good bad great keen fond afraid aware proud sure unsure fluent new close sick tired mad
crazy big huge expert serious ready open loyal able unable averse prone born""")
_ADJECTIVE_ENDING = re.compile(r"(?:ed|ical|ic|ant|ful|ous|able|ible|ive|ate|less)$")
_PREPOSITIONS = _set("in about to at on with by against for of from")
_BEGINS = {
    "uk": re.compile(r"(?:ить|ать|ять|уть|ють|іть|еть|[аяуюеіиї]є|ться|лю|[аяую]ю|ив|ила|ав|ала|ував|увала)$"),
    "ru": re.compile(r"(?:[аяуюеи]ет|ит|ят|ют|ется|ится|лю|[аяую]ю|ил|ила|ал|ала)$"),
}
_OTHER_VERBS = _set("""mag liebt liebe spielt spiele lernt lerne nutzt nutze benutzt verwendet hasst bevorzugt isst
liest kocht leitet baut schreibt aime joue apprend utilise prefere deteste mange lit dirige
ecrit gusta juega aprende usa prefiere odia come lee dirige escribe lubi gra uczy uzywa woli
nienawidzi czyta pisze gosta joga aprende prefere odeia piace gioca impara preferisce odia
legge scrive houdt speelt leert gebruikt haat leest""")


@dataclass(frozen=True, slots=True)
class Attribute:
    """What a key says about its value."""

    names: frozenset[str]
    """Its words in canonical form; equal ones are the same attribute."""
    limits: frozenset[str]
    """The words that say of whom, when or how the value holds."""

    def allows(self, other: Attribute, said: frozenset[str]) -> bool:
        """Return True if a statement with these words is one fact under both keys."""
        return self._added(said) == other._added(said)

    def is_plain(self, said: frozenset[str]) -> bool:
        """Return True if a statement with these words holds as it stands under this key."""
        return not self._added(said)

    def _added(self, said: frozenset[str]) -> frozenset[str]:
        """Return the words that the key adds to a statement with these words."""
        added = (self.limits | (self.names - _KINDS)) - said
        return frozenset(word for word in added if not any(_shortens(word, other) for other in said))


def _shortens(word: str, other: str) -> bool:
    """Return True for an abbreviation: "db" of "database", "perf" of "performance"."""
    if len(word) < 2 or 2 * len(word) > len(other) or word[0] != other[0]:
        return False
    letters = iter(other)
    return len(word) <= 4 and all(letter in letters for letter in word)


@lru_cache(maxsize=4096)
def attribute_of(key: str) -> Attribute:
    """Return the attribute that a key in its normal form names."""
    parts = [part for word in key.split("_") for part in re.findall(r"\d+|\D+", word)]
    words = [english_lemma(word) for word in _with_phrases(parts)]
    numbered = {word for word in parts[1:] if len(word) == 1 or word.isdigit()}  # "project_2", "project_b_status"
    words = [word for word in words if word not in _FILLERS and word not in numbered]
    limiting = _PEOPLE | _AGAINST | _WISHES | _WHICH | (_PLACES if len(words) > 1 else frozenset())
    if parts and parts[0] in _RELATIONS:
        limiting = frozenset(words)
    names, limits = (
        frozenset(_canonical().get(word, word) for word in found)
        for found in (words, [word for word in words if word in limiting])
    )
    return Attribute(names, limits | numbered)


def with_implied(said: frozenset[str]) -> frozenset[str]:
    """Return the words of a value with those words of a key that add nothing to it."""
    if said & _NEGATIVE:
        said |= _AGAINST
    return said | _WISHES if said & _WANTING else said


@lru_cache(maxsize=4096)
def makes_statement(content: str) -> bool:
    """Return True if a text says something by itself: it has a verb, or an adjective with what it refers to."""
    tokens = [token for token in text.tokens(text.clean(content)) if token[0].isalnum()]
    if len(tokens) < 2:
        return False
    code = text.detect_language([token.lower() for token in tokens])
    words = [text.fold(token) for token in tokens]
    while len(words) > 2 and words[0] in _OPENINGS:
        words = words[1:]
    first, second = words[0], words[1]
    if first in _SURE or second in ("is", "are", "was", "were") or first in verbs() or first in _OTHER_VERBS:
        return True
    if code in _BEGINS and _BEGINS[code].search(first):
        return True
    if second in ("of", "and", "or"):  # "Head of Engineering", "Trains and planes"
        return False
    if (base := _base(first)) in _VERBS:
        return first != base or second in grammar(code).kinds or first == "read"
    if _OCCUPATION.search(text.clean(content)):
        return True
    adjective = first in _ADJECTIVES or (len(first) > 4 and _ADJECTIVE_ENDING.search(first) is not None)
    return adjective and second in _PREPOSITIONS


_OCCUPATION = re.compile(r"^\w+(?: \w+){0,4} (?:at|@) [^\W\d_a-z]\w*")
"""A role and where: "Senior backend engineer at Stripe"."""
_SURE = _set("""i user he she they we я ich je yo ja is was has does do can cannot will would must should
can't don't doesn't isn't won't hasn't wasn't""")
_OPENINGS = _set(
    "never not the also really currently always often usually sometimes rarely mostly recently just still now strongly"
)


def _base(word: str) -> str:
    """Return the base form of a verb: "prefers", "presenting", "studied"."""
    if word.endswith("ies") and word[:-3] + "y" in _VERBS:
        return word[:-3] + "y"
    for ending in ("es", "s", "ing", "ed", "d"):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            stem = word[: -len(ending)]
            for form in (stem, stem + "e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem):
                if form in _VERBS:
                    return form
    if word.endswith("ied") and word[:-3] + "y" in _VERBS:
        return word[:-3] + "y"
    return _IRREGULAR.get(word, word)


_IRREGULAR = {"went": "go", "ran": "run", "wrote": "write", "built": "build", "grew": "grow", "led": "lead"}


def _with_phrases(words: list[str]) -> list[str]:
    found: list[str] = []
    at = 0
    while at < len(words):
        for size in (3, 2):
            if name := _phrases().get("_".join(words[at : at + size])) if at + size <= len(words) else None:
                found.append(name)
                at += size
                break
        else:
            found.append(words[at])
            at += 1
    return found


@lru_cache(maxsize=1)
def _phrases() -> dict[str, str]:
    return dict(entry.split("=") for entry in _PHRASES.replace("\n", "|").split("|"))


@lru_cache(maxsize=1)
def _canonical() -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for entry in _WORDS.split():
        head, equals, variant = entry.partition("=")
        if equals:
            name = head
        found[variant or head] = name
    return found

"""An upper bound for the number of tokens a model makes of a text, computed offline.

`count` never returns fewer than the tokenizers of today's models (byte-pair and SentencePiece ones with byte fallback,
WordPiece), so a budget kept by it is kept for each of them; for English and Markdown it stays close. It has no
vocabulary: frequent words and frequent parts of words count as one, any other letter as one, a digit as one, and
anything else outside ASCII as what its bytes may cost.
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["count"]

# Words that every tokenizer we know keeps whole after a space.
_WORDS = """
a ability about above absolutely academic accept access according account achieve across act action active activity
actually add added address advantage adventure advice affect after afternoon again against age agency ago agree
agreement ahead air airport album alive all allow almost alone along already also although always am amazing among
amount an analysis ancient and angry animal announced another answer any anyone anything anyway apartment app
apparently appear apply appreciate approach appropriate are area argument arm around arrived art article artist
artists as ask asked asking aspects assistant association at attack attempt attend attention audience author authority
available average avoid award aware away awesome baby back background bad bag balance ball band bank bar base based
basic basis battle be beach bear beat beautiful became because become bed bedroom been before began begin beginning
behavior behind being believe below benefit benefits besides best better between beyond big bill birth birthday bit
black block blog blood blue board boat body book books born boss both bottom box boy brain branch brand break
breakfast bridge brief bright bring broken brother brought budget build building built burn business busy but buy by
call called calm came camera camp campaign can cancer candidate capacity capital car card care career carry case cat
catch categories category cause celebrate center central century certain challenge challenges chance change changed
changes channel character charge chart cheap check chicken chief child children chocolate choice choose church
citizens city claim class clean clear click client climate close closed clothes club coach coast code coffee cold
collection college color come comes comfort comfortable coming comment commercial commitment committee common
communication community company compare competition complete complex computer concept concern concerned concert
condition conference confidence connect connection consider contact contain content continue control conversation cook
cool copy corner correct cost could counsel country couple course court cover create created creative credit crime
crisis critical crowd cultural culture cup curious current currently customer cut dad daily dance dangerous dark data
date daughter day days dead deal death debate decade decide decided decision deep defense definitely degree deliver
demand department depends describe design desire desk despite detail details determine develop development device did
die difference different difficult digital dinner direct direction director discover discuss discussion disease
distance do doctor document does dog dogs doing dollar done door down dream drink drive driver drop drug due during
each early eastern easy eat economic economy edit editor education effect effective effort eight either election
element else email emotional employee encourage end energy engine engineer engineering enjoy enough entire environment
equipment escape especially estimate even evening event events ever every everyone everything evidence exactly exam
example excellent except exchange excited exercise exist expect expensive experience expert explain explore express
extra extremely eye eyes face facility fact factor fail fair faith fall family famous fan far fashion fast father
favorite fear feature features feedback feel feeling feet felt female festival few field fight figure file files fill
film final finally finance financial find fine fingers finish fire first fish fit five flight floor flow flowers fly
focus follow following food foot for force foreign forest forever forget form format formed former forward found four
free fresh friend friends from front fuel full fun function fund future game games garden gas gave general generation
gentle get getting gift girl give given giving glass global go goal god goes going gold gone good got government grand
grass great green ground group grow growing growth guess guests guide guitar gun guy habit had hair half hand handle
hands hang happen happened happiness happy hard has hate have having he head health hear heard heart heat heavy height
help her here hide high highly hill him himself his history hit hold holiday home honest hope horse hospital hot hotel
hour hours house how however huge human hundred hurt husband i ice idea identify if image imagine immediately impact
important improve in include included including income increase incredible independent individual industry influence
information inside inspired install instead interest interested interesting international internet interview into
introduce invest investment invite is island issue issues it item its itself job jobs join journey joy judge judgment
jump just keep kept key kid kids kill kind kinda king kitchen knew know knowledge known lack lady lake land language
large last late later laugh launch law lay lead leader leaders leadership leading learn learned learning least leave
left legal less lessons let letter level library lie life light like likely limit line link list listen little live
lives living loan local location logic long look looking lose loss lost lot love loved low lucky lunch machine made
mail main maintain major make makes making male man manage manager many map mark market married master match material
matter maximum may maybe me mean means media medical meet meeting member members memory men mental mention mess
message met metal method middle might mile military million mind mine minute minutes miss missing mission mix mobile
mode model modern moment money month months mood moon more morning most mother motivation mountain mouth move moved
movie moving much museum music musical must my myself name named nation national nature near nearly necessary neck
need needs negative network never new news next nice night nine no none nor normal north not note notes nothing notice
novel now number object obviously occur ocean of off offer offered office officer official often oh oil old on once
one online only open operation opinion opportunity option or orange order organization original other others our out
outdoor outside over own owner pack page paid pain paint painting pair paper parents park part particular partner
party pass passion past path patient pattern pay peace people per perfect perform performance perhaps period
permission person personal pet pets phone photo photos phrase physical pick picture piece place plan plane planning
plans plant plastic plate platform play played player pleasure plenty plus pocket poem point police policy political
pool poor popular portfolio position positive possible possibly post potential power powerful practical practice
prefer prepare presence present president press pretty previous price pride primary print prior prison private prize
problem process produce product production professional program progress project promise promote proper property
protect proud prove provide public published pull purpose push put quality question questions quick quickly quiet quit
quite race radio rain raise ran range rate rather reach react read reader reading ready real reality realize really
reason receive received recent recently recipe recommend record red reduce reference reflect regular related
relationship release relevant religious remain remember remove repair repeat replace report represent request require
research resource resources respect respond response responsibility rest restaurant result results return review
reward rich ride right ring rise risk river road rock role roll romantic room root round routine rule run running safe
safety said sale salt same sat save saw say says scene schedule scheme school science screen sea search season seat
second secret section security see seek seem seems seen select self sell send sense sent sentence separate series
serious serve service session set settings seven several shape share shared she ship shoes shoot shop shopping short
shot should show shown shows sick side sign signed silver similar simple simply since single sister sit site situation
six size skin sky sleep slow small smart smile smooth snow so social society soft software soil sold solid solution
solve some someone something sometimes somewhat son song soon sort sound source south space speak special specific
spend spirit sport spot spread spring square stable staff stage stand standard standing star stars start started
starting state statement station stay step stick still stock stone stop storage store story straight strange strategy
stream street strength stress strong stronger structure struggle student students studio study stuff style subject
success successful such sudden suddenly suffer sugar suggest suit summer sun super support supportive sure surface
surprise survey sweet swim switch system table take taken takes taking talk target task taste tax tea teach teacher
teaching team tech technology television tell ten tend term terms test text than thank thanks that the their them
theme themselves then theory therapy there these they thing things think thinking third this those though thought
thousand three through throw thus ticket time times tiny tired title to today together told tomorrow tonight too took
tool tools top topic total touch tough tour tourist toward town trade traditional traffic trail training transfer
travel treat treatment tree trees trial trip trouble truck true trust truth try trying turn twelve twenty twice two
type typical under understand unique unit united university unless until up update upon upset us use used user users
using usually valuable value variety various vehicle version very via victory video view village visit voice volunteer
vote wait walk walking wall want wanted war warm was wash watch water way we wear weather web website wedding week
weekend weeks weight weird welcome well went were west what when where whether which while white who whole whom whose
why wide wife wild will willing win wind window wine winter wish with within without woman women wonder wonderful wood
word words work worked working works world worry worth would write writing written wrong yard yeah year years yellow
yes yesterday yet yoga you young your yourself
"""
# Those that also stay whole at the beginning of a line and with a capital.
_EVERYWHERE = """
a about add all an and any are as at back be best but by can check city create data date day do email end error event
file find first for free from get go good group has have he her here his home how i if image in info into is it item
just key last let level life line link list live local long look make man map me memory message model more my name
new next no not note now number of off old on one only open or order other our out over page part people person place
plan play point post power project public question read real right run same search see service set she
show side since size so some source start state status step stop student summary support system table task team test
text that the then there they this three time title to top two type under up update use user using value very
video view was water we web week well what when where which while who why will with word work world year yes you your
"""
_NAMES = """January February March April May June July August September October November December Monday Tuesday
Wednesday Thursday Friday Saturday Sunday American English French Christmas"""
# Parts that may occur anywhere in a word.
_PARTS = """
ab able ac ace ack act ad ade ag age aid ail ain air ak ake al all ally am ame an ance and ane ant ap ape ar ard are
ark arm arr art as ase ast at ate ation att aut av ave ay ba back ball ban bar bas bat be bel ben ber bi bl ble bo
book bor box br bu by ca cal can cap car cat ce ces cess ch cher ci cial ck cl co col com comm con cont cor cr ct cu
cur cy da day de dec del der des di ding dis do down dr ds du duct dy ea ear east eb ec ech ect ed ee ef eg ei el
ell em ement en enc ence end ens ent ep er erm ern ers ert erv es ese esp ess est et etter ev ever every ew ex ext ey
fa fe fer ff ffic fi fic field fl fo fore form fort fr fu ful ga ge gest get ght gi gl go gr graph ground gu ha hand
hard he head her here hi high hip ho hold home house hu hy ia ial ian ib ic ical ice ick id idd ide ie ies if iff ig
ight ign ike il ild ill ils ily im ime in inal ind ine ing ingle ings ink ins int inter ion ions ious ip ipp ir ire
irst is ise ish ism ist it ite ity iv ive ized izing ja je jo ju ka ke ki ks la land lar lay ld le led les less let
lev lf li light like line ling list ll lo lock log long look low ls lt lu ly ma mail man mark mat me ment mer mi min
mis mit mm mo mon more most mp ms mu mun my na nam nc nd nder ne nel ner ness ng ni ning nis nk nn no non nov ns nt nu
ny oad oard ob obs oc ock od of off og ogn oi oint ol old ole oll olog olution om omb ome omm omp on one ong ons oo
ood ook ool oom oon oot op ope or ord ore ork orm orn ort os ose oss ost ot oth other ott ou ough ought ould oun ound
ount our ous out ov over ow own ows oy pa pe pect pend per ph pho pi pl place play po point port pos pot pp ppe pr pre
press pri print pro ps ption pu qu que quest ra ract rain ram rand rap rated rating rd re rec red ref rel rem rent res
ret ri ric ridge right ring rit rk rl rm rn ro road rol room round row rr rs rt ru ruct run ry sa sc sch se sec self
sen sept ser serv set sh ship shop si side sign sim sing sion sit size sk sl sm sn so son sors sp spec ssion st
stan star start ste stem ster sting stone str stra su sub sum sup sw sy ta te ted ten tend ter tern text th ther thing
thod ti tic tim time ting tion tle to tor tr tra tract tri tro ts tt tu tur ture tw ty ub uc uck uction ud ue ug ui
uit ul ular ult um ump un und under une ung unt up ur urch ure urg urn urs urt us use ush uss ust ut uth va val van
var ve vel ven ver vers very vi vice vid view vis vo vol wa wal war ward ware warm wat water way we wear well wer west
wh wi win wind wise with wo work world writ ya ye year yo za ze zi
"""


@lru_cache(maxsize=1)
def _common_words() -> frozenset[str]:
    return frozenset(_WORDS.split())


@lru_cache(maxsize=1)
def _everywhere() -> frozenset[str]:
    plain = _EVERYWHERE.split()
    return frozenset(plain) | frozenset(word.title() for word in plain)


@lru_cache(maxsize=1)
def _common_names() -> frozenset[str]:
    return frozenset(_NAMES.split())


@lru_cache(maxsize=1)
def _word_parts() -> frozenset[str]:
    return frozenset(_PARTS.split())


_LONGEST_PART = 7
_LONGEST_WORD = 14

_compiled = lru_cache(maxsize=4)(re.compile)
# A word with the space before it; a capital followed by small letters; capitals; one digit; a run of one mark;
# whitespace; anything else.
_PIECE = r"( ?)([A-Z]?[a-z]+|[A-Z]+(?![a-z]))|[A-Z]|( +)|(([-=*#_.~])\5+)|[\x00-\x7f]|([^\x00-\x7f]+)"


def count(text: str) -> int:
    """Return the most tokens that a common tokenizer makes of a text.

    Count a combined text as a whole: a join may cost a token more or less. Only whole lines can be counted separately:
    if `a` ends with a line break, `a + b` has exactly one less than both apart.
    """
    if not text:
        return 0
    spaced, anywhere, names = _common_words(), _everywhere(), _common_names()
    total = 1  # some put a mark before the text
    for match in _compiled(_PIECE).finditer(text):
        kind = match.lastindex
        if kind == 2:
            word = match[2]
            if word in anywhere or (match[1] and (word in spaced or word in names)):
                total += 1
            else:
                total += _letters(word, bool(match[1]) and word.islower())
        elif kind == 3:
            total += len(match[3])
            if text[match.end() : match.end() + 1] in _AFTER_SPACE:
                total -= 1
        elif kind == 5:
            total += (len(match[4]) + 1) // 2 + 1
        elif kind == 6:
            total += sum(map(_bytes, match[6]))
        else:
            total += 1
    return total


@lru_cache(maxsize=8192)
def _letters(word: str, spaced: bool) -> int:
    """Return the fewest known parts that make up a word, unknown letters being parts of their own.

    `spaced` for a word of small letters after a space: the form in which tokenizers know most words.
    """
    length = len(word)
    if length < 3 and not word.islower():
        return length
    words, parts = _common_words(), _word_parts()
    word = word.lower() if word[1:].islower() else word
    least = [0]
    for end in range(1, length + 1):
        best = least[end - 1] + 1
        for start in range(max(0, end - _LONGEST_PART), end - 1):
            if least[start] + 1 < best and word[start:end] in parts:
                best = least[start] + 1
        if 3 < end <= _LONGEST_WORD and word[:end] in words:  # a word, to which an ending may be added
            best = 1 if spaced else min(best, 2 if end < 5 else 3 if end < 8 else 4)
        least.append(best)
    # Few words are that long, and compounds are not always split where they were joined.
    glued = 1 if least[-1] > 2 and word.islower() and not spaced else 0
    return min(length, least[-1] + glued + max(0, length - 10) // 4)


# Letters beyond ASCII, and marks of ordinary typing, that cost at most one.
_ONE = frozenset("áâãçéíóßàäåæèêëìîïðñòôõöøùúûüýÁÂÃÇÉÍÓÜ’‘“”–—…•абвгдежзийклмнопрстуфхцчшщъыьэюяіё")
_AFTER_SPACE = frozenset("([\"'-*#$&")


def _bytes(character: str) -> int:
    """Return the cost of one character beyond ASCII: its bytes, less for letters that all tokenizers know."""
    if character in _ONE:
        return 1
    code = ord(character)
    return 2 if code < 0x800 else 3 if code < 0x10000 else 4

"""Function words of Russian and English: in nearly every passage, so worth nothing in a query.

Own lists, of closed word classes only (articles, pronouns, prepositions, conjunctions, particles, auxiliaries, question
words). They are compared before stemming, with `ё` written as `е`.
"""

ENGLISH = frozenset(
    """
    a an the this that these those
    i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself it its itself they them their theirs themselves
    am is are was were be been being do does did doing done have has had having can could may might must shall should
    will would
    and or nor but if then else than so as because while although though unless until whether
    of in on at by for with about against between into through during before after above below to from up down out off
    over under per via within without upon onto
    not no only own same such too very just also again once here there
    what which who whom whose when where why how
    all any both each few more most other some
    i'm it's don't doesn't didn't isn't aren't wasn't weren't can't won't what's that's there's
    """.split()
)

RUSSIAN = frozenset(
    """
    я меня мне мной мною мы нас нам нами ты тебя тебе тобой вы вас вам вами он его ему им нем она ее ей ею ней оно
    они их ими них себя себе собой мой моя мое мои моего моей моих наш наша наше наши нашего нашей наших ваш ваша ваше
    ваши вашего вашей ваших свой своя свое свои своего своей своих
    этот эта это эти этого этой этому этом этим этих тот та то те того той тому том тем тех такой такая такое такие
    и или а но да же ли бы если то чтобы что хотя пока потому поэтому также тоже либо ни не нет
    в во на с со у к ко о об обо от до из изо за по под над при про для без через между перед около после
    быть был была было были есть будет будут буду является являются
    кто что какой какая какое какие какого какой каких каком каким чей чья чье чьи который которая которое которые
    которого которой которых котором которым где куда откуда когда почему зачем как сколько
    весь вся все всего всей всех всем всеми сам сама само сами
    уже еще только даже лишь вот тут там здесь очень так бы ведь разве
    """.split()
)

STOP_WORDS = ENGLISH | RUSSIAN

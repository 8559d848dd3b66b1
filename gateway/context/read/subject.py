"""Whether a message names a subject. *And what now?* names none: it fits any conversation, and its words find no passage.

The words below are function words of some languages, with the few verbs and nouns by which people ask how to go on. *Who*, *where*
and *when* are not among them, because the other words of such a question may find a passage.
"""

import re
from typing import Final

from gateway.context.read.cues import OTHER, SELF

_EMPTY_WORDS: Final = (
    # English
    "a about again ahead all alright also am an and another any anything are as at back be been before begin but by can carry come continue"
    " could did do does doing done else everything far fine first for from further get give go goes going good got great had has have help"
    " here how idea ideas if in into is it it's its just keep know last left let let's like look made make may maybe might more most move much"
    " must need next nice no not nothing now of off ok okay on one onward or other our out over perfect plan please point proceed really"
    " recommend right say shall should show so some something soon start step steps still suggest suggestion sure take tell thank thanks that"
    " that's the then there these they thing things think this those to today together too up us very want was we'll well were what what'd what's"
    " which will with wonderful would yeah yep yes yet"
    # German
    " aber alles als also am an anfangen auch auf bis bitte da dann danke das dazu denn der des die dies diese dir doch du ein eine einen"
    " er es etwas fangen fehlt fertig fortfahren für ganz geht genau gern gerne gibt gut habe haben hast hier idee ideen im in ist ja jetzt"
    " kann kannst können könnte könnten mach mache machen machst mehr mich mir mit müssen nächste nächsten nächster nächstes nein nicht nichts noch nun"
    " nur oder okay prima schlag schlägst schon schritt schritte sein sind so sollen sollten soll sollte sonst steht super tun um und uns vielen vor"
    " vorschlag wäre was weiter weitermachen weitere werden wie wieder will willst wir wird wollen womit zu zuerst zum zunächst zur"
    # French
    " à ai alors allons après as au aussi autre avec bien bon c'est ça ce cela ces cette chose comment commencer continue continuer continuons"
    " d'abord d'accord dans de des dit donc doit dois doivent devons devrait devrais devrions du elle en encore ensuite est est-ce et étape étapes faire"
    " fais faisons fait faites faut idée idées il ils j'ai je la le les maintenant mais merci moins on ou oui par parfait peut peux plus"
    " pour pouvons prochain prochaine proposes proposez puis qu'est qu'est-ce qu'on que quel quelle quelles quels quoi reste s'il se si"
    " sommes suggère suite super sur tout très un une va vas veut veux y"
    # Spanish, Portuguese
    " a ahora al algo algún alguna allí aquí así bien bueno claro como cómo con continúa continuamos continuar cosa cosas cual cuál cuáles"
    " de debemos deberíamos debería debo del después el ella empezamos empezar en entonces era es eso esta está este esto falta fue genial gracias ha haces"
    " hacemos hacer hago haz hay idea la las lo los luego más me mejor mucha muchas muy no o otra otro para paso pasos perfecto pero podemos"
    " por primero propones próximo puedes pues que qué queda se seguimos seguir si sí siguiente sobre sugieres tal tenemos toca todo un una va vale"
    " vamos y ya agora além até começar com continuar depois deve devemos deveria devíamos do então fazemos fazer fazes faz isso isto mais"
    " muito na não no obrigada obrigado ou passo passos podemos próxima próximo quais qual quê quer seguinte sim sugere tem tudo uma vamos você"
    # Italian
    " adesso allora anche andiamo avanti bene certo che ci come con continua continuare continuiamo cos'altro cosa cose così da dai del"
    " della di dobbiamo dopo dovrei dovremmo e è ecco fa facciamo fai fare già grazie ho idea idee il in inizia la le lo ma manca me mi molto ne"
    " nel o ora passi passo per perfetto più poi possiamo poter procediamo procedere prossima prossimo puoi qual quale quali quello questo qui"
    " resta sì si sono suggerisci tutto un una va vai vuoi"
    # Dutch, Swedish, Polish, Turkish
    " aan als beginnen bedankt daarna dan dank dat de dit doe doen een en er gaan ga goed het hierna hoe ja je jij kan kunnen maar meer met"
    " moet moeten naar nog nou nu of om ook op oké over stap stappen straks te toch tot van verder volgende voor wat we wie wil"
    " wordt ze zo zou zouden zullen att av då det du eller en ett för fortsätt fortsätta gör göra härnäst hur i är ja kan med men mer nästa nu och"
    " om på sedan ska steg tack till vad vi vill a ale co czy dalej dalsze dobra dobrze dziękuję dzięki i jak jest kontynuuj krok kroki"
    " mamy możemy na następne następny nas ok potem powinniśmy proszę robić robimy się tak teraz to w więc z zrobić bu da daha de evet"
    " hadi ile iyi mı mi ne nasıl neler o olarak peki sonra sonraki şimdi tamam teşekkürler ve yapalım yapmalıyız yapıyoruz"
    # Russian
    " а в вот вы да дальше давай давайте делаем делать для до его ещё еще же за и идём или как какие какой мне можно мы на надо"
    " нам начать начнём не нет но ну нужно о ок он она они по пожалуйста потом предлагаешь продолжай продолжим с сделать следующее следующий спасибо"
    " стоит так там теперь то тоже ты тут хорошо что чем чего шаг шаги это этого"
)
_EMPTY: Final = frozenset(_EMPTY_WORDS.split()) | SELF | OTHER
_TOKEN: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_EMPTY_UNSPACED: Final = re.compile(
    "谢谢你?|謝謝|多谢|好的?|行|嗯|哦|那么?|然后|接下来|接着|下一步|现在|以后|之后|咱们?|我们?|你们?|您|该|应该|应當|要|能|可以|想|做|干|办|继续|说|看|讲|怎么样?|什么|啥|哪些?|还|再"
    "|有|是|的|了|吗|呢|吧|啊|呀|么|都|就|请|帮|给|一下|建议|事情?|步"
    "|ありがとう(?:ございます|ございました)?|それでは?|では|じゃあ?|次|つぎ|今|いま|これから|あと|この|その|は|が|を|に|で|の|と|も|へ|から|何|なに|どう|どれ|ほか|他"
    "|しましょう|しよう|すれば|すべき|したら|する|します|して|した|いい|よい|良い|です|ます|でしょう|ください|続け|進め|教え|れば|ましょう|よう|て|た|か|ね|よ|な|う|い|ん|お|ご"
    "|감사합니다|고마워요?|이제|다음|무엇|뭐|뭘|어떻게|할까요?|하면|해야|하지|해요?|좋아요?|그럼|계속|우리|은|는|이|가|을|를|에|도|으로|로|요"
)
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
MOST_CHARACTERS: Final = 200
"""The most characters of a message that may name no subject. A longer message always has one."""


def names_a_subject(text: str) -> bool:
    """Return whether a message has a word that says what it is about."""
    if len(text) > MOST_CHARACTERS:
        return True
    low = text.lower().replace("’", "'")
    if not low.isascii() and _UNSPACED.search(low):
        low = _EMPTY_UNSPACED.sub(" ", low)
    return not _EMPTY.issuperset(_TOKEN.findall(low))

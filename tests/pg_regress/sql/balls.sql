-- The query types and predicates of the indexes.
-- Query types: text form, arguments out of range, damaged text.
SELECT _ball(minhash('', slots => 4), 0.8), _ball(B'0110', 2), _ball(B'', 0);
SELECT ball::text::_ball::text = ball::text AS same
FROM (SELECT _ball(minhash('some more text'), 0.1 + 0.2) AS ball) b;
SELECT ' <0110 , 2> '::_ball, '<,0>'::_ball;
-- A value is in no ball of another kind.
SELECT B'01' <@ _ball(minhash('a'), 0.1) AS bits, minhash('a') <@ _ball(B'01', 9) AS signature, '{1}'::bigint[] %> _ball(B'01', 9) AS set;
SELECT _ball(minhash('some text'), 0);
SELECT _ball(B'0110', -1);
SELECT '<0120,2>'::_ball;
SELECT '<0110,-2>'::_ball;
SELECT '<minhash:1:word:3:case:4x32:6f7d37eeb3134a5b:empty,1.5>'::_ball;
SELECT 'minhash:1:word:3:case:4x32:6f7d37eeb3134a5b:empty'::_ball;

-- The predicates: empty, incomparable, NULL.
SELECT near_dup(minhash('a b c d'), minhash('A, b, c, d!')) AS equal,
       near_dup(minhash('a b c d'), minhash('e f g h')) AS other,
       near_dup(minhash(''), minhash('')) AS empty,
       near_dup(minhash('a b c d'), minhash('a b c d', k => 2)) AS incomparable,
       near_dup(minhash('a b c d'), NULL) AS null;
SELECT near_dup(minhash('a b c d'), minhash('a b c d'), 1.5);
SELECT hamming_within(B'0110', B'0101', 2) AS near, hamming_within(B'0110', B'0101', 1) AS far,
       hamming_within(B'0110', B'01100', 9) AS lengths, hamming_within(B'', B'', 0) AS empty;
SELECT hamming_within(B'0110', B'0101', -1);

-- The query types and predicates of the indexes.
-- The query type: short text, which is read back only if it is sent to another server; arguments out of range.
SELECT _ball(minhash('', slots => 4), 0.8), _ball(B'0110', 2), _ball(B'', 0);
SELECT length(_ball(minhash('some more text'), 0.1 + 0.2)::text) < 100 AS short;
SELECT _ball(B'0110', 2)::text <> _ball(B'0111', 2)::text AS bits, _ball('{1,2}'::bigint[], 1)::text <> _ball('{1,3}'::bigint[], 1)::text AS sets;
SELECT '<4 bits:d230820576a48090,2>'::_ball;
SET extra_float_digits = 3;
SELECT _ball(B'0110', 2), _ball(B'0110', 2)::text::_ball::text = _ball(B'0110', 2)::text AS bits,
       minhash('a b c') <@ _ball(minhash('a b c'), 0.8)::text::_ball AS signature, '{1}'::bigint[] <% _ball('{1,2}'::bigint[], 1)::text::_ball AS set,
       'a b c' <@ _ball('a b c', 0.8, 3, 'word', 'case')::text::_ball AS document;
RESET extra_float_digits;
SELECT '\x0200000004000000600'::_ball;
SELECT '\x02000000040000006f01'::_ball;
-- No value is in a ball of another kind.
SELECT B'01' <@ _ball(minhash('a'), 0.1) AS bits, minhash('a') <@ _ball(B'01', 9) AS signature, '{1}'::bigint[] %> _ball(B'01', 9) AS set;
SELECT _ball(minhash('some text'), 0);
SELECT _ball(B'0110', -1);

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

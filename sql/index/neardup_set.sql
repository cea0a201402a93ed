CREATE OPERATOR CLASS set_ops DEFAULT FOR TYPE bigint[] USING neardup AS
    OPERATOR 1 <% (bigint[], _ball),
    OPERATOR 5 %> (bigint[], _ball),
    OPERATOR 6 <%> (bigint[], _ball),
    FUNCTION 1 (bigint[], bigint[]) near_dup(bigint[], bigint[], double precision);

COMMENT ON OPERATOR CLASS set_ops USING neardup IS
    'exact lookup of sets by containment, in both directions, and by Jaccard similarity, at every threshold';
COMMENT ON OPERATOR FAMILY set_ops USING neardup IS
    'exact lookup of sets by containment and Jaccard similarity';

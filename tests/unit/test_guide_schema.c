/* JSON schemas: which parts a grammar enforces, which are only checked, and which are refused, with their paths.
 * In the tables, ' stands for ". */
#include "base/utf8.h"
#include "engine/guide/schema.h"
#include "engine/guide/schema_internal.h"
#ifdef WRAPPED
#include "allocations.h"
#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bounds of a multiple if the schema has none: 2^53 - 1, and a tenth or a hundredth of it. */
#define SAFE   "'minimum':-9007199254740991,'maximum':9007199254740991,"
#define SAFE_1 "'minimum':-900719925474099,'maximum':900719925474099,"
#define SAFE_2 "'minimum':-90071992547409,'maximum':90071992547409,"

#define OPTIONS "{\"x-guidance\":{\"json_allowed_escapes\":\"nrbtf\\\\\\\"\",\"whitespace_flexible\":false}"
#define DATE                                                                                                           \
    "^(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|"             \
    "02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)" \
    "$"
#define D4        "'$schema':'http://json-schema.org/draft-04/schema#'"
#define D7        "'$schema':'http://json-schema.org/draft-07/schema#'"
#define ENDLESS   "'type':'object','properties':{'a':{'$ref':'#'}},'required':['a']"
#define ENDLESS_T "'type':'object','properties':{'a':{'$ref':'#/$defs/t'}},'required':['a']"
#define KA        "'type':'object','required':['k'],'properties':{'k':{'const':'a'}}"
#define KB        "'type':'object','required':['k'],'properties':{'k':{'enum':['b','c']}}"

/* `text` with " in place of '; the caller frees it. */
static char *quoted(const char *text) {
    char *copy = strdup(text);
    assert_non_null(copy);
    for (char *c = strchr(copy, '\''); c; c = strchr(c, '\'')) {
        *c = '"';
    }
    return copy;
}

static struct json_object *json_of(const char *text) {
    char *copy = quoted(text);
    enum json_tokener_error fault;
    struct json_tokener *tokener = json_tokener_new_ex(1000);
    struct json_object *value = json_tokener_parse_ex(tokener, copy, (int)strlen(copy));
    fault = json_tokener_get_error(tokener);
    if (fault == json_tokener_continue) { /* a number may continue, so the tokener needs the end */
        value = json_tokener_parse_ex(tokener, "", 1);
        fault = json_tokener_get_error(tokener);
    }
    if (fault != json_tokener_success) {
        fail_msg("not JSON: %s", text);
    }
    json_tokener_free(tokener);
    free(copy);
    return value;
}

static enum fm_code prepare(const char *text, bool strict, struct fm_schema *out, struct fm_error *error) {
    struct json_object *schema = json_of(text);
    *error = (struct fm_error){0};
    enum fm_code code = fm_schema_prepare(schema, strict, out, error);
    json_object_put(schema);
    return code;
}

static void expect_text(const char *schema, const struct fm_buf *actual, const char *start, const char *expected) {
    char text[8192];
    char *rest = quoted(expected);
    int len = snprintf(text, sizeof text, "%s%s", start, rest);
    free(rest);
    if (actual->len != (size_t)len || memcmp(actual->data, text, (size_t)len) != 0) {
        fail_msg("%s\nexpected %s\n     got %.*s", schema, text, (int)actual->len, actual->data);
    }
}

/* ---- what goes where ---- */

static const struct row {
    const char *schema;
    const char *guide;    /* after the options */
    const char *enforced; /* of the report */
    const char *checked;  /* "": the guide is exact */
} rows[] = {
    {"true", "}", "", ""},
    {"{}", "}", "", ""},
    /* annotations, and unknown keywords */
    {"{'title':'t','description':'d','default':1,'examples':[1],'$comment':'c','deprecated':true,'readOnly':true,"
     "'writeOnly':true,'contentMediaType':'a/b','contentEncoding':'base64','contentSchema':{'not':{}},"
     "'$id':'https://example.com/a','$anchor':'a','$dynamicAnchor':'b','$vocabulary':{},'$defs':{'a':{'not':{}}},"
     "'definitions':{'a':{'not':{}}},'$schema':'https://json-schema.org/draft/2020-12/schema','nullable':true,"
     "'discriminator':{'x-guidance':1},'id':'x','$recursiveAnchor':true}",
     "}", "", ""},
    /* type, enum, const */
    {"{'type':'string'}", ",'type':'string'}", "'type'", ""},
    {"{'type':['integer','null']}", ",'type':['integer','null']}", "'type'", ""},
    {"{'enum':['b',1,1.5,null,true,[1],{'z':1,'a':2}]}", ",'enum':['b',1,1.5,null,true,[1],{'z':1,'a':2}]}", "'enum'",
     ""},
    {"{'const':'\\t\xC3\xA9'}", ",'const':'\\t\xC3\xA9'}", "'const'", ""},
    {"{'const':null}", ",'const':null}", "'const'", ""},
    {"{'type':'string','const':'a\\u0001'}", ",'type':'string'}", "'type'", "'const'"},
    {"{'enum':[{'a':['\\u007f']}]}", "}", "", "'enum'"},
    {"{'enum':['\\u0000']}", "}", "", "'enum'"},
    /* numbers */
    {"{'minimum':-1.5,'maximum':3.0,'exclusiveMinimum':-2,'exclusiveMaximum':1e-7}",
     ",'minimum':-1.5,'maximum':3,'exclusiveMinimum':-2,'exclusiveMaximum':1e-07}",
     "'exclusiveMaximum','exclusiveMinimum','maximum','minimum'", ""},
    {"{'minimum':-0.0}", ",'minimum':0}", "'minimum'", ""},
    /* two bounds with the same integer part; the one that is an integer is exclusive */
    {"{'type':'number','exclusiveMinimum':0,'maximum':0.5}", ",'type':'number','maximum':0.5}", "'maximum','type'",
     "'exclusiveMinimum'"},
    {"{'exclusiveMaximum':-2,'exclusiveMinimum':-2.5}", ",'exclusiveMinimum':-2.5}", "'exclusiveMinimum'",
     "'exclusiveMaximum'"},
    {"{" D4 ",'type':['null','number'],'minimum':3,'exclusiveMinimum':true,'maximum':3.5}",
     ",'type':['null','number'],'minimum':3,'maximum':3.5}", "'maximum','minimum','type'", "'exclusiveMinimum'"},
    {"{'allOf':[{'exclusiveMinimum':7},{'maximum':7.5}]}", ",'allOf':[{},{'maximum':7.5}]}", "'allOf','maximum'",
     "'allOf[0].exclusiveMinimum'"},
    {"{'properties':{'a':{'exclusiveMinimum':7},'b':{'maximum':7.5}}}",
     ",'properties':{'a':{'exclusiveMinimum':7},'b':{'maximum':7.5}}}", "'exclusiveMinimum','maximum','properties'",
     ""},
    {"{'allOf':[{'exclusiveMinimum':7},{'maximum':8.5}]}", ",'allOf':[{'exclusiveMinimum':7},{'maximum':8.5}]}",
     "'allOf','exclusiveMinimum','maximum'", ""},
    {"{'type':'integer','exclusiveMinimum':0,'maximum':0.5}", ",'type':'integer','exclusiveMinimum':0,'maximum':0.5}",
     "'exclusiveMinimum','maximum','type'", ""},
    {"{'exclusiveMinimum':0.5,'maximum':0.75}", ",'exclusiveMinimum':0.5,'maximum':0.75}",
     "'exclusiveMinimum','maximum'", ""},
    {"{'exclusiveMinimum':0,'maximum':1.5}", ",'exclusiveMinimum':0,'maximum':1.5}", "'exclusiveMinimum','maximum'",
     ""},
    {"{" D4 ",'exclusiveMinimum':true,'minimum':3,'maximum':4,'exclusiveMaximum':false}",
     ",'exclusiveMinimum':3,'maximum':4}", "'exclusiveMinimum','maximum','minimum'", ""},
    {"{" D4 ",'exclusiveMaximum':true,'maximum':3}", ",'exclusiveMaximum':3}", "'exclusiveMaximum','maximum'", ""},
    {"{'$schema':'http://json-schema.org/schema','const':1}", ",'const':1}", "'const'", ""},
    {"{'$schema':'https://json-schema.org/draft-07/schema#','items':[{'type':'null'}]}",
     ",'prefixItems':[{'type':'null'}]}", "'items','type'", ""},
    {"{'multipleOf':0.01}", "," SAFE_2 "'multipleOf':0.01}", "'multipleOf'", ""},
    {"{'maximum':9e15,'multipleOf':0.01}", ",'maximum':90071992547409,'minimum':-90071992547409,'multipleOf':0.01}",
     "'maximum','multipleOf'", ""},
    {"{'exclusiveMinimum':-9e15,'multipleOf':0.5}",
     ",'exclusiveMinimum':-900719925474099,'maximum':900719925474099,'multipleOf':0.5}",
     "'exclusiveMinimum','multipleOf'", ""},
    {"{'minimum':-1,'maximum':1.5,'multipleOf':0.01}", ",'minimum':-1,'maximum':1.5,'multipleOf':0.01}",
     "'maximum','minimum','multipleOf'", ""},
    {"{'minimum':9e15,'multipleOf':0.5}", ",'minimum':9000000000000000}", "'minimum'", "'multipleOf'"},
    {"{'exclusiveMaximum':-9e15,'multipleOf':0.5}", ",'exclusiveMaximum':-9000000000000000}", "'exclusiveMaximum'",
     "'multipleOf'"},
    {"{'minimum':9e15,'multipleOf':7}", ",'minimum':9000000000000000,'maximum':9007199254740991,'multipleOf':7}",
     "'minimum','multipleOf'", ""},
    {"{" D4 ",'exclusiveMinimum':true,'maximum':3,'multipleOf':2}",
     ",'maximum':3,'minimum':-9007199254740991,'multipleOf':2}", "'exclusiveMinimum','maximum','multipleOf'", ""},
    {"{'multipleOf':10000}", "," SAFE "'multipleOf':10000}", "'multipleOf'", ""},
    {"{'multipleOf':10001}", "}", "", "'multipleOf'"},
    {"{'multipleOf':0.07}", "}", "", "'multipleOf'"},
    {"{'multipleOf':0.00001}", "}", "", "'multipleOf'"},
    {"{'multipleOf':1e300}", "}", "", "'multipleOf'"},
    {"{'properties':{'a':{'multipleOf':0.5},'b':{'multipleOf':1000},'c':{'multipleOf':0.01},'d':{'multipleOf':7}}}",
     ",'properties':{'a':{" SAFE_1 "'multipleOf':0.5},'b':{" SAFE "'multipleOf':1000},'c':{},'d':{}}}",
     "'multipleOf','properties'", "'properties.c.multipleOf','properties.d.multipleOf'"},
    /* strings */
    {"{'minLength':1,'maxLength':5.0}", ",'minLength':1,'maxLength':5}", "'maxLength','minLength'", ""},
    {"{'maxLength':100000}", ",'maxLength':100000}", "'maxLength'", ""},
    {"{'maxLength':100001}", "}", "", "'maxLength'"},
    {"{'maxLength':1000000000000000000000}", "}", "", "'maxLength'"},
    {"{'pattern':'^a+$'}", ",'pattern':'^a+$'}", "'pattern'", ""},
    {"{'pattern':'(?=a)'}", "}", "", "'pattern'"},
    {"{'pattern':'^a\\\\x01$'}", "}", "", "'pattern'"},
    {"{'pattern':'^a\\u0001$'}", "}", "", "'pattern'"},
    {"{'patternProperties':{'^\\\\v':{}}}", "}", "", "'patternProperties'"},
    {"{'format':'date'}", ",'pattern':'" DATE "'}", "'format'", ""},
    {"{'format':'date','pattern':'^2'}", ",'pattern':'^2','allOf':[{'pattern':'" DATE "'}]}", "'format','pattern'", ""},
    {"{'allOf':[{'maxLength':9}],'pattern':'^2','format':'date'}",
     ",'allOf':[{'maxLength':9},{'pattern':'" DATE "'}],'pattern':'^2'}", "'allOf','format','maxLength','pattern'", ""},
    {"{'format':'idn-email'}", "}", "", "'format'"},
    {"{'type':'integer','format':'int32'}", ",'type':'integer'}", "'type'", "'format'"},
    /* arrays */
    {"{'items':{'type':'null'},'minItems':1,'maxItems':3}", ",'items':{'type':'null'},'minItems':1,'maxItems':3}",
     "'items','maxItems','minItems','type'", ""},
    {"{'maxItems':100001}", "}", "", "'maxItems'"},
    {"{'prefixItems':[true,{'type':'null'}],'items':false}", ",'prefixItems':[true,{'type':'null'}],'items':false}",
     "'items','prefixItems','type'", ""},
    {"{'additionalItems':false}", "}", "", ""}, /* unknown to 2020-12 */
    {"{" D7 ",'items':[{'type':'null'}],'additionalItems':false}", ",'prefixItems':[{'type':'null'}],'items':false}",
     "'additionalItems','items','type'", ""},
    {"{" D7 ",'items':{'type':'null'},'additionalItems':false,'prefixItems':[true]}", ",'items':{'type':'null'}}",
     "'items','type'", ""},
    {"{'uniqueItems':true}", "}", "", "'uniqueItems'"},
    {"{'uniqueItems':false}", "}", "", ""},
    {"{'contains':true,'minContains':2,'maxContains':3}", "}", "", "'contains','minContains','maxContains'"},
    {"{'minContains':2,'maxContains':3}", "}", "", ""},
    {"{'unevaluatedItems':false}", "}", "", "'unevaluatedItems'"},
    {"{'unevaluatedItems':true}", "}", "", ""},
    /* objects */
    {"{'properties':{'b':true,'a':{'type':'null'}},'required':['b'],'additionalProperties':false}",
     ",'properties':{'b':true,'a':{'type':'null'}},'required':['b'],'additionalProperties':false}",
     "'additionalProperties','properties','required','type'", ""},
    {"{'patternProperties':{'^a.':{'type':'null'}}}",
     ",'patternProperties':{'^a[^\\\\x{A}\\\\x{D}\\\\x{2028}\\\\x{2029}\\\\x{0}-\\\\x{7}\\\\x{B}\\\\x{E}-\\\\x{1F}"
     "\\\\x{7F}]':{'type':"
     "'null'}}}",
     "'patternProperties','type'", ""},
    {"{'patternProperties':{'^ab':{},'^b':{}},'allOf':[true],'additionalProperties':false}",
     ",'allOf':[true],'patternProperties':{'^ab':{},'^b':{}},'additionalProperties':false}",
     "'additionalProperties','allOf','patternProperties'", ""},
    {"{'patternProperties':{'^ab':{},'^a':{}},'additionalProperties':false}", "}", "",
     "'patternProperties','additionalProperties'"},
    {"{'patternProperties':{'^a':{},'b':{}},'additionalProperties':true}", ",'additionalProperties':true}",
     "'additionalProperties'", "'patternProperties'"},
    {"{'patternProperties':{'(?!a)':{}}}", "}", "", "'patternProperties'"},
    {"{'allOf':[{'patternProperties':{'^a':{}}},{'patternProperties':{'^b':{}}}]}", ",'allOf':[{},{}]}", "'allOf'",
     "'allOf[0].patternProperties','allOf[1].patternProperties'"},
    {"{'propertyNames':{'maxLength':3}}", "}", "", "'propertyNames'"},
    {"{'propertyNames':true}", "}", "", ""},
    {"{'dependentRequired':{'a':['b']},'dependentSchemas':{'a':{}},'dependencies':{'a':['b'],'c':{}}}", "}", "",
     "'dependentRequired','dependentSchemas','dependencies'"},
    {"{'dependentRequired':{},'dependentSchemas':{},'dependencies':{}}", "}", "", ""},
    {"{'unevaluatedProperties':false}", "}", "", "'unevaluatedProperties'"},
    /* the number of properties */
    {"{'minProperties':1}", ",'minProperties':1}", "'minProperties'", ""},
    {"{'minProperties':2}", "}", "", "'minProperties'"}, /* the text may have a key twice */
    {"{'minProperties':1,'required':['a']}", ",'required':['a']}", "'minProperties','required'", ""},
    {"{'minProperties':2,'required':['a']}", ",'minProperties':2,'required':['a']}", "'minProperties','required'", ""},
    {"{'minProperties':1,'properties':{'a':{}}}", ",'properties':{'a':{}}}", "'properties'", "'minProperties'"},
    {"{'minProperties':1,'properties':{'a':{}},'additionalProperties':false}",
     ",'minProperties':1,'properties':{'a':{}},'additionalProperties':false}",
     "'additionalProperties','minProperties','properties'", ""},
    {"{'minProperties':1,'maxProperties':1,'properties':{'a':{},'b':{}},'additionalProperties':false}",
     ",'minProperties':1,'maxProperties':1,'properties':{'a':{},'b':{}},'additionalProperties':false}",
     "'additionalProperties','maxProperties','minProperties','properties'", ""},
    {"{'maxProperties':2,'properties':{'a':{},'b':{},'c':{}},'additionalProperties':false}",
     ",'properties':{'a':{},'b':{},'c':{}},'additionalProperties':false}", "'additionalProperties','properties'",
     "'maxProperties'"},
    {"{'maxProperties':3,'properties':{'a':{},'b':{},'c':{}},'additionalProperties':false}",
     ",'properties':{'a':{},'b':{},'c':{}},'additionalProperties':false}",
     "'additionalProperties','maxProperties','properties'", ""},
    {"{'maxProperties':2}", ",'maxProperties':2}", "'maxProperties'", ""},
    {"{'maxProperties':2,'properties':{'a':{}}}", ",'properties':{'a':{}}}", "'properties'", "'maxProperties'"},
    {"{'maxProperties':2,'anyOf':[true]}", ",'anyOf':[true]}", "'anyOf'", "'maxProperties'"},
    /* no object can have all required properties: the grammar contains this contradiction, and allows values that are
     * not objects */
    {"{'required':['a','b'],'maxProperties':1,'properties':{'a':{},'b':{}},'additionalProperties':false}",
     ",'required':['a','b'],'maxProperties':1,'properties':{'a':{},'b':{}},'additionalProperties':false}",
     "'additionalProperties','maxProperties','properties','required'", ""},
    {"{'required':['a','b'],'maxProperties':1,'properties':{'c':{}},'allOf':[true]}",
     ",'required':['a','b'],'maxProperties':1,'properties':{'c':{}},'allOf':[true]}",
     "'allOf','maxProperties','properties','required'", ""},
    {"{'minProperties':3,'maxProperties':2}", ",'minProperties':3,'maxProperties':2}",
     "'maxProperties','minProperties'", ""},
    /* schemas in place */
    {"{'anyOf':[{'type':'null'},true],'allOf':[{'maxLength':1}]}",
     ",'anyOf':[{'type':'null'},true],'allOf':[{'maxLength':"
     "1}]}",
     "'allOf','anyOf','maxLength','type'", ""},
    {"{'oneOf':[{'type':'null'},{'type':'string'}]}", ",'anyOf':[{'type':'null'},{'type':'string'}]}", "'oneOf','type'",
     ""},
    {"{'oneOf':[{'type':'integer'},{'type':'number'}]}", ",'anyOf':[{'type':'integer'},{'type':'number'}]}", "'type'",
     "'oneOf'"},
    {"{'oneOf':[true,{}]}", ",'anyOf':[true,{}]}", "", "'oneOf'"},
    {"{'oneOf':[{'enum':[1,'a']},{'const':2}]}", ",'anyOf':[{'enum':[1,'a']},{'const':2}]}", "'const','enum','oneOf'",
     ""},
    {"{'oneOf':[{'const':1},{'const':1.0}]}", ",'anyOf':[{'const':1},{'const':1.0}]}", "'const'", "'oneOf'"},
    {"{'oneOf':[{" KA "},{" KB "}]}", ",'anyOf':[{" KA "},{" KB "}]}",
     "'const','enum','oneOf','properties','required','type'", ""},
    {"{'oneOf':[{" KA "},{'type':'object','properties':{'k':{'const':'a'}}}]}",
     ",'anyOf':[{" KA "},{'type':'object','properties':{'k':{'const':'a'}}}]}",
     "'const','properties','required','type'", "'oneOf'"},
    {"{'oneOf':[{" KA "},{'type':'object','additionalProperties':false}]}",
     ",'anyOf':[{" KA "},{'type':'object','additionalProperties':false}]}",
     "'additionalProperties','const','oneOf','properties','required','type'", ""},
    {"{'oneOf':[{'$ref':'#/$defs/a'},{'anyOf':[{'type':'null'},{" KB "}]}],'$defs':{'a':{" KA "}}}",
     ",'anyOf':[{'$ref':'#/$defs/1'},{'anyOf':[{'type':'null'},{" KB "}]}],'$defs':{'1':{" KA "}}}",
     "'$ref','anyOf','const','enum','oneOf','properties','required','type'", ""},
    {"{'oneOf':[{'required':['k'],'properties':{'k':{'const':1}}},{'required':['k'],'properties':{'k':{'const':2}}}]}",
     ",'anyOf':[{'required':['k'],'properties':{'k':{'const':1}}},{'required':['k'],'properties':{'k':{'const':2}}}]}",
     "'const','properties','required'", "'oneOf'"}, /* 1 fits both, because it is not an object */
    /* up to draft 7, members beside $ref have no effect */
    {"{" D7 ",'oneOf':[{'$ref':'#/a','const':1},{'$ref':'#/a','const':2}],'a':{'type':'integer'}}",
     ",'anyOf':[{'$ref':'#/$defs/1','const':1},{'$ref':'#/$defs/1','const':2}],'$defs':{'1':{'type':'integer'}}}",
     "'$ref','const','type'", "'oneOf'"},
    {"{" D7 ",'oneOf':[{'const':2},{'$ref':'#/a','const':1}],'a':{'type':'integer'}}",
     ",'anyOf':[{'const':2},{'$ref':'#/$defs/1','const':1}],'$defs':{'1':{'type':'integer'}}}", "'$ref','const','type'",
     "'oneOf'"},
    {"{" D7 ",'oneOf':[{'$ref':'#/a'},{'$ref':'#/b'}],'a':{'const':1},'b':{'const':2}}",
     ",'anyOf':[{'$ref':'#/$defs/1'},{'$ref':'#/$defs/2'}],'$defs':{'1':{'const':1},'2':{'const':2}}}",
     "'$ref','const','oneOf'", ""},
    {"{'oneOf':[{'$ref':'#/a','const':1},{'$ref':'#/a','const':2}],'a':{'type':'integer'}}",
     ",'anyOf':[{'$ref':'#/$defs/1','const':1},{'$ref':'#/$defs/1','const':2}],'$defs':{'1':{'type':'integer'}}}",
     "'$ref','const','oneOf','type'", ""},
    {"{'oneOf':[{'maxLength':1}],'anyOf':[true]}", ",'anyOf':[true],'allOf':[{'anyOf':[{'maxLength':1}]}]}",
     "'anyOf','maxLength','oneOf'", ""},
    {"{'not':{'type':'null'}}", "}", "", "'not'"},
    {"{'if':true,'then':{},'else':{}}", "}", "", "'if','then','else'"},
    {"{'if':true}", "}", "", ""},
    {"{'then':true}", "}", "", ""},
    {"{'items':{'$dynamicRef':'#a','$recursiveRef':'#'}}", ",'items':{}}", "'items'",
     "'items.$dynamicRef','items.$recursiveRef'"},
    /* $ref */
    {"{'type':'object','properties':{'next':{'$ref':'#'}}}",
     ",'type':'object','properties':{'next':{'$ref':'#/$defs/1'}},'$defs':{'1':{'type':'object','properties':{'next':"
     "{'$ref':'#/$defs/1'}}}}}",
     "'$ref','properties','type'", ""},
    {"{'$ref':'#/$defs/a','$defs':{'a':{'items':{'$ref':'#/$defs/b','title':'no sibling'}},'b':{'anyOf':[{'$ref':"
     "'#/$defs/a'},{'type':'null'}]},'c':{'not':{}}}}",
     ",'$ref':'#/$defs/1','$defs':{'1':{'items':{'$ref':'#/$defs/2'}},'2':{'anyOf':[{'$ref':'#/$defs/1'},{'type':"
     "'null'}]}}}",
     "'$ref','anyOf','items','type'", ""},
    {"{'$ref':'#/components/a~1b/0/%C3%A9','components':{'a/b':[{'\xC3\xA9':{'uniqueItems':true}}]}}",
     ",'$ref':'#/$defs/1','$defs':{'1':{}}}", "'$ref'", "'components[\\'a/b\\'][0][\\'\xC3\xA9\\'].uniqueItems'"},
    {"{'items':{'$ref':'#x'},'$defs':{'a':{'$anchor':'x','type':'null'}}}",
     ",'items':{'$ref':'#/$defs/1'},'$defs':{'1':{'type':'null'}}}", "'$ref','items','type'", ""},
    {"{" D7 ",'items':{'$ref':'#x'},'definitions':{'a':{'$id':'#x','type':'null'}}}",
     ",'items':{'$ref':'#/$defs/1'},'$defs':{'1':{'type':'null'}}}", "'$ref','items','type'", ""},
    {"{'$id':'https://example.com/r','items':{'$ref':'https://example.com/r#/$defs/a'},'$defs':{'a':{'type':'null'}}}",
     ",'items':{'$ref':'#/$defs/1'},'$defs':{'1':{'type':'null'}}}", "'$ref','items','type'", ""},
    {"{'$id':'Node','type':'object','properties':{'n':{'$ref':'Node'}}}",
     ",'type':'object','properties':{'n':{'$ref':'#/$defs/1'}},'$defs':{'1':{'type':'object','properties':{'n':{'$ref':"
     "'#/$defs/1'}}}}}",
     "'$ref','properties','type'", ""},
    {"{'items':{'$id':'https://example.com/i','items':{'$ref':'#/$defs/a'},'$defs':{'a':{'type':'null'}}},'$defs':{'a':"
     "{'type':'string'}}}",
     ",'items':{'items':{'$ref':'#/$defs/1'}},'$defs':{'1':{'type':'null'}}}", "'$ref','items','type'", ""},
    {"{'$ref':'b','items':{'$id':'b','items':{'$ref':'#/$defs/c'},'$defs':{'c':{'type':'null'}}}}",
     ",'$ref':'#/$defs/1','items':{'items':{'$ref':'#/$defs/2'}},'$defs':{'1':{'items':{'$ref':'#/$defs/2'}},'2':"
     "{'type':'null'}}}",
     "'$ref','items','type'", ""},
    /* the reference back is inside a value, so the recursion ends */
    {"{'items':{'properties':{'x':{'not':{'$ref':'#/items'}}}},'$dynamicAnchor':'a','contains':{'$dynamicRef':'#a'}}",
     ",'items':{'properties':{'x':{}}}}", "'items','properties'", "'items.properties.x.not','contains'"},
    /* paths */
    {"{'properties':{'a b':{'not':{}},'0':{'not':{}},'':{'not':{}},'x-y_$':{'anyOf':[{'not':{}}]}}}",
     ",'properties':{'a b':{},'0':{},'':{},'x-y_$':{'anyOf':[{}]}}}", "'anyOf','properties'",
     "'properties[\\'a b\\'].not','properties.0.not','properties[\\'\\'].not','properties.x-y_$.anyOf[0].not'"},
};

static void expect_report(const char *schema, const struct fm_buf *report, const char *enforced, const char *checked) {
    char text[2048];
    snprintf(text, sizeof text, "{'enforced':[%s],'checked':[%s]}", enforced, checked);
    expect_text(schema, report, "", text);
}

static void expect_row(const struct row *row) {
    struct fm_schema out;
    struct fm_error error;
    if (prepare(row->schema, false, &out, &error) != FM_OK) {
        fail_msg("%s\nrefused: %s", row->schema, error.detail);
    }
    expect_text(row->schema, &out.guide, OPTIONS, row->guide);
    expect_report(row->schema, &out.report, row->enforced, row->checked);
    assert_int_equal(out.exact, *row->checked == '\0');
    fm_schema_free(&out);
}

/* With strict, the first keyword that would only be checked is refused. Everything else is the same. */
static void expect_strict_row(const struct row *row) {
    struct fm_schema out;
    struct fm_error error;
    enum fm_code code = prepare(row->schema, true, &out, &error);
    if (*row->checked == '\0') {
        assert_int_equal(code, FM_OK);
        expect_text(row->schema, &out.guide, OPTIONS, row->guide);
        assert_true(out.exact);
        fm_schema_free(&out);
        return;
    }
    struct fm_buf param;
    char *first = quoted(row->checked + 1);
    char *end = strstr(first, "\",\"");
    end = end ? end : first + strlen(first) - 1;
    fm_buf_init(&param, 1024);
    for (char *c = first; c < end; c++) { /* from JSON: \" becomes " */
        if (*c != '\\') {
            fm_buf_append_char(&param, *c);
        }
    }
    fm_buf_append_char(&param, '\0');
    assert_int_equal(code, FM_INVALID_REQUEST);
    assert_int_equal(strncmp(error.param, "format.schema.", 14), 0);
    assert_string_equal(error.param + 14, param.data);
    assert_non_null(strstr(error.detail, "set strict to false"));
    fm_buf_free(&param);
    free(first);
}

static void test_keywords(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_row(&rows[i]);
        expect_strict_row(&rows[i]);
    }
}

static void test_table(void **state) {
    (void)state;
    const struct fm_schema_keyword *last = NULL;
    const struct fm_schema_keyword *keyword;
    size_t count = 0;
    for (; (keyword = fm_schema_keyword_at(&fm_schema_table, count)); count++) {
        assert_true(!last || strcmp(last->name, keyword->name) < 0);
        assert_ptr_equal(fm_schema_keyword_find(&fm_schema_table, keyword->name), keyword);
        assert_true(keyword->write || !keyword->in_place);
        last = keyword;
    }
    assert_true(count <= 128); /* work->enforced has 128 bits */
    assert_null(fm_schema_keyword_find(&fm_schema_table, "x-guidance"));
}

/* ---- refusals ---- */

static const struct {
    const char *schema;
    const char *path; /* the path of the fault, after "format.schema" */
} refusals[] = {
    {"null", ""},
    {"[]", ""},
    {"'x'", ""},
    {"false", ""},
    {"{'x-guidance':{}}", ".x-guidance"},
    {"{'$defs':{'a':{'x-guidance':{}}}}", ".$defs.a.x-guidance"},
    {"{'not':{'items':{'x-guidance':{}}}}", ".not.items.x-guidance"},
    {"{'$ref':'#/a','a':{'x-guidance':{}}}", ".a.x-guidance"},
    {"{'$schema':'http://json-schema.org/schemas'}", ".$schema"},
    {"{'$schema':'ftp://json-schema.org/schema'}", ".$schema"},
    {"{'$schema':'//json-schema.org/schema'}", ".$schema"},
    {"{'$schema':7}", ".$schema"},
    {"{'items':{" D7 "}}", ".items.$schema"},
    /* no schema where one is expected */
    {"{'items':7}", ".items"},
    {"{'items':[true]}", ".items"},
    {"{" D7 ",'items':[true,1]}", ".items[1]"},
    {"{'prefixItems':{}}", ".prefixItems"},
    {"{'prefixItems':[]}", ".prefixItems"},
    {"{'properties':[]}", ".properties"},
    {"{'properties':{'a b':null}}", ".properties[\"a b\"]"},
    {"{'patternProperties':{'\\\\d':3}}", ".patternProperties[\"\\\\d\"]"},
    {"{'additionalProperties':'no'}", ".additionalProperties"},
    {"{'allOf':{}}", ".allOf"},
    {"{'anyOf':[]}", ".anyOf"},
    {"{'oneOf':[{},[]]}", ".oneOf[1]"},
    {"{'not':0}", ".not"},
    {"{'if':0}", ".if"},
    {"{'$defs':[]}", ".$defs"},
    {"{'$defs':{'a':1}}", ".$defs.a"},
    {"{'contains':[]}", ".contains"},
    {"{'dependencies':{'a':1}}", ".dependencies.a"},
    {"{'dependencies':{'a':[1]}}", ".dependencies.a"},
    {"{'dependentSchemas':{'a':[]}}", ".dependentSchemas.a"},
    {"{'$ref':'#/a','a':[]}", ".a"},
    /* wrong values */
    {"{'type':'text'}", ".type"},
    {"{'type':[]}", ".type"},
    {"{'type':['null','null']}", ".type"},
    {"{'type':null}", ".type"},
    {"{'enum':{}}", ".enum"},
    {"{'enum':[]}", ".enum"},
    {"{'enum':[1,[9007199254740993]]}", ".enum"},
    {"{'const':{'a':1e300}}", ".const"},
    {"{'const':1e-300}", ".const"},
    {"{'const':9007199254740991}", NULL},
    {"{'minimum':'1'}", ".minimum"},
    {"{'minimum':1e17}", ".minimum"},
    {"{'maximum':-1e-21}", ".maximum"},
    {"{'exclusiveMinimum':true}", ".exclusiveMinimum"},
    {"{" D4 ",'exclusiveMaximum':3}", ".exclusiveMaximum"},
    {"{'multipleOf':0}", ".multipleOf"},
    {"{'multipleOf':-1}", ".multipleOf"},
    {"{'minLength':-1}", ".minLength"},
    {"{'minLength':1.5}", ".minLength"},
    {"{'minLength':100001}", ".minLength"},
    {"{'minItems':1000000000}", ".minItems"},
    {"{'minProperties':100001}", ".minProperties"},
    {"{'maxItems':'3'}", ".maxItems"},
    {"{'maxProperties':-1}", ".maxProperties"},
    {"{'minContains':-1}", ".minContains"},
    /* schemas that no value fits */
    {"{'type':'object','required':['a','b'],'maxProperties':1}", ".maxProperties"},
    {"{'type':'object','required':['a'],'maxProperties':1}", NULL},
    {"{'type':'object','minProperties':2,'maxProperties':1}", ".maxProperties"},
    {"{'type':'object','minProperties':1,'maxProperties':1}", NULL},
    {"{'required':['a'],'maxProperties':0}", NULL}, /* 1 fits, because it is not an object */
    {"{'type':['null','object'],'required':['a'],'maxProperties':0}", NULL},
    {"{'type':'object','properties':{'a':{'type':'object','required':['b'],'maxProperties':0}}}", NULL},
    {"{'type':'object','properties':{'a':{'type':'object','required':['b'],'maxProperties':0}},'required':['a']}",
     ".properties.a.maxProperties"},
    {"{'anyOf':[{'type':'object','required':['b'],'maxProperties':0},{'const':1}]}", NULL},
    {"{'anyOf':[{'type':'object','required':['b'],'maxProperties':0}]}", ""},
    {"{'allOf':[true,{'type':'object','required':['b'],'maxProperties':0}]}", ".allOf[1].maxProperties"},
    {"{'$ref':'#/$defs/a','$defs':{'a':{'type':'object','required':['b'],'maxProperties':0}}}",
     ".$defs.a.maxProperties"},
    {"{'items':{'$ref':'#/$defs/a'},'$defs':{'a':{'type':'object','required':['b'],'maxProperties':0}}}", NULL},
    {"{'type':'array','items':{'type':'object','required':['b'],'maxProperties':0}}", NULL},
    {"{'type':'array','items':{'type':'object','required':['b'],'maxProperties':0},'minItems':1}", ""},
    {"{'type':'string','allOf':[{'type':'null'}]}", ""},
    {"{'allOf':[false]}", ".allOf[0]"},
    {"{'uniqueItems':1}", ".uniqueItems"},
    {"{'format':1}", ".format"},
    {"{'pattern':1}", ".pattern"},
    {"{'pattern':'('}", ".pattern"},
    {"{'patternProperties':{'a{':{}}}", ".patternProperties[\"a{\"]"},
    {"{'required':'a'}", ".required"},
    {"{'required':[1]}", ".required"},
    {"{'required':['a','a']}", ".required"},
    {"{'required':['a\\u0000']}", ".required"},
    {"{'required':['a'],'properties':{'a':false}}", ".required"},
    {"{'dependentRequired':{'a':'b'}}", ".dependentRequired.a"},
    {"{'dependentRequired':[]}", ".dependentRequired"},
    {"{'$anchor':1}", ".$anchor"},
    {"{'$id':1}", ".$id"},
    {"{'$ref':1}", ".$ref"},
    {"{'$dynamicRef':1}", ".$dynamicRef"},
    {"{'not':{'minLength':'x'}}", ".not.minLength"}, /* also if nothing is enforced there */
    {"{'$defs':{'a':{'enum':7}}}", ".$defs.a.enum"}, /* and in a definition that is not used */
    /* a NUL in a name or a reference */
    {"{'$ref':'#/$defs/a\\u0000b','$defs':{'a':true}}", ".$ref"},
    {"{'$dynamicRef':'#a\\u0000'}", ".$dynamicRef"},
    {"{'$recursiveRef':'#\\u0000'}", ".$recursiveRef"},
    {"{'format':'date\\u0000x'}", ".format"},
    {"{'$schema':'http://json-schema.org/schema\\u0000'}", ".$schema"},
    {"{'type':'null\\u0000'}", ".type"},
    {"{'type':['null','string\\u0000']}", ".type"},
    {"{'$anchor':'a\\u0000'}", ".$anchor"},
    {"{'$id':'a\\u0000'}", ".$id"},
    {"{" D4 ",'id':'a\\u0000'}", ".id"},
    {"{'id':'a\\u0000'}", NULL},
    /* $refs to nowhere */
    {"{'$ref':'http://example.com/a'}", ".$ref"},
    {"{'$ref':'other.json#/a'}", ".$ref"},
    {"{'$ref':'#/$defs/a'}", ".$ref"},
    {"{'items':{'$ref':'#/$defs/a/1'},'$defs':{'a':[true]}}", ".$defs.a"},
    {"{'$ref':'#/a/01','a':[{},{}]}", NULL}, /* a leading 0 is accepted */
    {"{'$ref':'#/a/2','a':[{},{}]}", ".$ref"},
    {"{'$ref':'#/a/-','a':[{},{}]}", ".$ref"},
    {"{'$ref':'#a'}", ".$ref"},
    {"{'$id':'https://a.example/x/','$defs':{'a':{'$id':'b/c'},'d':{'$ref':'b/c'}}}", ".$defs.d.$ref"},
    /* $refs that return to themselves */
    {"{'$ref':'#'}", ".$ref"},
    {"{'allOf':[{'anyOf':[{'$ref':'#'}]}]}", ".allOf[0].anyOf[0].$ref"},
    {"{'properties':{'a':{'$ref':'#/$defs/a'}},'$defs':{'a':{'oneOf':[{'$ref':'#/$defs/b'}]},'b':{'$ref':'#/$defs/"
     "a'}}}",
     ".$defs.b.$ref"},
    {"{'$ref':'#/$defs/v','$defs':{'v':{'properties':{'x':{'$ref':'#/$defs/u'}},'allOf':[{'$ref':'#/$defs/u'}]},'u':"
     "{'$ref':'#/$defs/v'}}}",
     ".$defs.u.$ref"},
    /* and $refs whose values never end */
    {"{" ENDLESS "}", ""},
    {"{'$ref':'#/$defs/t','$defs':{'t':{'type':'array','items':{'$ref':'#/$defs/t'},'minItems':1}}}", ".$defs.t"},
    {"{'$ref':'#/$defs/t','$defs':{'t':{'type':'object','properties':{'v':{'type':'string'},'l':{'$ref':'#/$defs/t'}},"
     "'required':['v','l']}}}",
     ".$defs.t"},
    {"{'items':{'$ref':'#/$defs/t'},'$defs':{'t':{" ENDLESS_T "}}}", ".$defs.t"}, /* even if no value has to use it */
    {"{'$defs':{'t':{" ENDLESS_T "}}}", NULL},                                    /* nothing uses it */
    {"{'properties':{'a':{'$ref':'#'}},'required':['a']}", NULL},                 /* 1 fits: it is no object */
    {"{'type':'object','allOf':[{'properties':{'a':{'$ref':'#/$defs/"
     "t'}},'required':['a']}],'$defs':{'t':{'$ref':'#'}}}",
     ".$defs.t"},
    {"{'type':'object','properties':{'a':{'anyOf':[{'$ref':'#'},{'type':'null'}]}},'required':['a']}", NULL},
    {"{'type':'object','properties':{'a':{'oneOf':[{'$ref':'#'},{'$ref':'#'}]}},'required':['a']}", ""},
    {"{'type':'object','properties':{'a':{'allOf':[{'$ref':'#'}]}},'required':['a']}", ""},
    {"{'type':['object','integer'],'properties':{'a':{'$ref':'#'}},'required':['a']}", NULL},
    {"{'type':'object','additionalProperties':{'$ref':'#'},'required':['a']}", ""},
    {"{'type':'object','additionalProperties':{'$ref':'#'},'minProperties':1}", ""},
    {"{'type':'object','additionalProperties':{'$ref':'#'}}", NULL},
    {"{'type':'object','additionalProperties':{'$ref':'#'},'properties':{'b':true},'required':['b']}", NULL},
    {"{'type':'array','prefixItems':[{'$ref':'#'}],'minItems':1}", ""},
    {"{'type':'array','prefixItems':[true,{'$ref':'#'}],'minItems':1}", NULL},
    {"{'type':'array','prefixItems':[true],'items':{'$ref':'#'},'minItems':2}", ""},
    {"{" D7 ",'type':'array','items':[{'$ref':'#'}],'minItems':1}", ""},
    {"{" D7 ",'type':'array','items':[true],'additionalItems':{'$ref':'#'},'minItems':2}", ""},
    /* the grammar, not the schema check, refuses a schema that no value fits */
    {"{'items':{'$ref':'#/$defs/t'},'$defs':{'t':{'type':'string','allOf':[{'type':'null'}]}}}", NULL},
    {"{'items':{'$ref':'#/$defs/t'},'$defs':{'t':{'type':'object','additionalProperties':false,'required':['a']}}}",
     NULL},
    /* two definitions need each other; in the second row, one of them can also end with null */
    {"{'$ref':'#/$defs/a','$defs':{'a':{'type':'array','items':{'$ref':'#/$defs/b'},'minItems':1},'b':{'type':'array',"
     "'items':{'$ref':'#/$defs/a'},'minItems':1}}}",
     ".$defs.a"},
    {"{'$ref':'#/$defs/a','$defs':{'a':{'type':'array','items':{'$ref':'#/$defs/b'},'minItems':1},'b':{'type':'array',"
     "'items':{'anyOf':[{'$ref':'#/$defs/a'},{'type':'null'}]},'minItems':1}}}",
     NULL},
    /* $refs that return to themselves through keywords that only a validator follows */
    {"{'const':1,'not':{'$ref':'#'}}", ".not.$ref"},
    {"{'if':{'$ref':'#'},'then':true}", ".if.$ref"},
    {"{'if':true,'then':{'allOf':[{'$ref':'#'}]}}", ".then.allOf[0].$ref"},
    {"{'if':true,'else':{'not':{'$ref':'#'}}}", ".else.not.$ref"},
    {"{'dependentSchemas':{'a':{'$ref':'#'}}}", ".dependentSchemas.a.$ref"},
    {"{" D7 ",'dependencies':{'a':['b'],'c':{'$ref':'#'}}}", ".dependencies.c.$ref"},
    {"{'$recursiveRef':'#'}", ".$recursiveRef"},
    {"{'not':{'$recursiveRef':'#'}}", ".not.$recursiveRef"},
    {"{'$dynamicAnchor':'a','anyOf':[{'$dynamicRef':'#a'}]}", ".anyOf[0].$dynamicRef"},
    {"{'$dynamicAnchor':'a','allOf':[{'$id':'x','$dynamicAnchor':'b','$dynamicRef':'#a'}]}", ".allOf[0].$dynamicRef"},
    {"{'$dynamicRef':'#/a','a':7}", ".a"},
    /* recursive $refs that llguidance can't merge */
    {"{'$ref':'#/$defs/a','$defs':{'a':{'properties':{'n':{'$ref':'#/$defs/a','type':'object'}}}}}",
     ".$defs.a.properties.n.$ref"},
    {"{'$ref':'#/$defs/a','$defs':{'a':{'items':{'anyOf':[{'$ref':'#/$defs/a'}],'maxItems':3}}}}",
     ".$defs.a.items.anyOf[0].$ref"},
};

static void test_refusals(void **state) {
    (void)state;
    for (size_t i = 0; i < 2 * sizeof refusals / sizeof refusals[0]; i++) {
        const char *schema = refusals[i / 2].schema;
        const char *path = refusals[i / 2].path;
        struct fm_schema out;
        struct fm_error error;
        enum fm_code code = prepare(schema, i % 2 == 0, &out, &error);
        if (!path) {
            assert_int_equal(code, FM_OK);
            fm_schema_free(&out);
            continue;
        }
        if (code != FM_INVALID_REQUEST || strncmp(error.param, "format.schema", 13) != 0 ||
            strcmp(error.param + 13, path) != 0 || strstr(error.detail, "format.schema")) {
            fail_msg("%s\nexpected %s\n     got %d %s %s", schema, path, code, error.param, error.detail);
        }
        assert_null(out.guide.data);
        assert_null(out.report.data);
    }
}

/* ---- limits ---- */

/* `start`, `count` times `each` with its number in place of #, `end`; the caller frees it. */
static char *repeat(const char *start, const char *each, size_t count, const char *end) {
    struct fm_buf text;
    fm_buf_init(&text, 64u << 20);
    fm_buf_append_str(&text, start);
    for (size_t i = 0; i < count; i++) {
        for (const char *c = each; *c; c++) {
            char number[24];
            snprintf(number, sizeof number, "%zu", i);
            if (*c == '#') {
                fm_buf_append_str(&text, number);
            } else {
                fm_buf_append_char(&text, *c);
            }
        }
    }
    fm_buf_append(&text, end, strlen(end) + 1);
    assert_false(text.failed);
    return text.data;
}

static void expect_limit(char *text, const char *path) {
    struct fm_schema out;
    struct fm_error error;
    enum fm_code code = prepare(text, false, &out, &error);
    if (code != (path ? FM_INVALID_REQUEST : FM_OK) || (path && strcmp(error.param, path) != 0)) {
        fail_msg("%.80s...\nexpected %s, got %s %s", text, path ? path : "success", error.param, error.detail);
    }
    if (code == FM_OK) {
        fm_schema_free(&out);
    }
    free(text);
}

static char *nested(size_t depth) {
    char *inner = repeat("", "{\"items\":", depth, "true");
    char *text = repeat(inner, "}", depth, "");
    free(inner);
    return text;
}

static void test_a_long_path_is_cut(void **state) {
    (void)state;
    struct fm_schema out;
    struct fm_error error;
    char *text = repeat("{\"properties\":{\"", "é", sizeof error.param, "\":{\"type\":1}}}");
    assert_int_equal(prepare(text, false, &out, &error), FM_INVALID_REQUEST);
    size_t len = strlen(error.param);
    assert_true(len >= sizeof error.param - 2);
    assert_int_equal(fm_utf8_whole_prefix(error.param, len), len);
    free(text);
}

static void test_limits(void **state) {
    (void)state;
    expect_limit(nested(31), NULL);
    struct fm_schema out;
    struct fm_error error;
    char *text = nested(32);
    char *path = repeat("format.schema", ".items", 32, "");
    assert_int_equal(prepare(text, false, &out, &error), FM_INVALID_REQUEST);
    assert_string_equal(error.param, path);
    assert_non_null(strstr(error.detail, "32"));
    free(path);
    free(text);
    expect_limit(repeat("{\"a\":", "[", 63, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}"), NULL);
    expect_limit(repeat("{\"a\":", "[", 64, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}"),
                 "format.schema");
    expect_limit(repeat("{\"anyOf\":[true", ",{}", 4998, "]}"), NULL);
    expect_limit(repeat("{\"anyOf\":[true", ",{}", 4999, "]}"), "format.schema.anyOf[4999]");
    expect_limit(repeat("{\"enum\":[0", ",\"a\"", 999, "]}"), NULL);
    expect_limit(repeat("{\"enum\":[0", ",\"a\"", 1000, "]}"), "format.schema.enum");
    expect_limit(repeat("{\"anyOf\":[true", ",{\"const\":[1]}", 500, "]}"), NULL);
    expect_limit(repeat("{\"anyOf\":[true", ",{\"const\":[1]}", 501, "]}"), "format.schema.anyOf[501].const");
    expect_limit(repeat("{\"pattern\":\"", "a", 1024, "\"}"), NULL);
    expect_limit(repeat("{\"pattern\":\"", "a", 1025, "\"}"), "format.schema.pattern");
    expect_limit(repeat("{\"pattern\":\"", "(", 60000, "\"}"), "format.schema.pattern");
    expect_limit(repeat("{\"$ref\":\"#", "a", 1024, "\"}"), "format.schema.$ref");
    expect_limit(repeat("{\"title\":\"", "a", 1048564, "\"}"), NULL);
    expect_limit(repeat("{\"title\":\"", "a", 1048565, "\"}"), "format.schema");
    expect_limit(repeat("{\"enum\":[0", ",\"aaaaaaaaaa\"", 800000, "]}"), "format.schema"); /* 10 MB, very fast */
}

static void test_ref_depth(void **state) {
    (void)state;
    for (size_t count = 127; count < 129; count++) { /* a link is two levels deep: its schema, and items */
        struct fm_buf text;
        fm_buf_init(&text, 1u << 20);
        fm_buf_append_str(&text, "{\"$ref\":\"#/$defs/0\",\"$defs\":{");
        for (size_t i = 0; i < count; i++) {
            char entry[96];
            snprintf(entry, sizeof entry, "\"%zu\":{\"items\":{\"$ref\":\"#/$defs/%zu\"}},", i, i + 1);
            fm_buf_append_str(&text, entry);
        }
        char last[32];
        snprintf(last, sizeof last, "\"%zu\":{}}}", count);
        fm_buf_append(&text, last, strlen(last) + 1);
        expect_limit(text.data, count == 127 ? NULL : "format.schema.$defs.127.items");
    }
}

static void test_many_checked(void **state) {
    (void)state;
    struct fm_schema out;
    struct fm_error error;
    char *text = repeat("{\"anyOf\":[true", ",{\"not\":{}}", 101, "]}");
    assert_int_equal(prepare(text, false, &out, &error), FM_OK);
    assert_false(out.exact);
    fm_buf_append_char(&out.report, '\0');
    assert_non_null(strstr(out.report.data, "\"anyOf[100].not\"]}"));
    assert_null(strstr(out.report.data, "\"anyOf[101].not\""));
    fm_schema_free(&out);
    free(text);
    char *names = repeat("{\"properties\":{\"", "a", 2000, "\":{\"not\":{}}}}");
    assert_int_equal(prepare(names, false, &out, &error), FM_OK);
    fm_buf_append_char(&out.report, '\0');
    assert_int_equal(strlen(out.report.data), strlen("{\"enforced\":[\"properties\"],\"checked\":[\"\"]}") + 1024);
    assert_non_null(strstr(out.report.data, "aaa...\"]}"));
    fm_schema_free(&out);
    free(names);
}

/* The schemas of oneOf are compared in pairs, while the budget for comparisons lasts. */
static void test_large_one_of(void **state) {
    (void)state;
    static const struct {
        size_t branches;
        bool exact;
    } cases[] = {{600, true}, {999, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fm_schema out;
        struct fm_error error;
        char *text = repeat("{\"oneOf\":[{\"type\":\"null\"}", ",{\"const\":#}", cases[i].branches, "]}");
        assert_int_equal(prepare(text, false, &out, &error), FM_OK);
        assert_int_equal(out.exact, cases[i].exact);
        fm_schema_free(&out);
        free(text);
    }
    struct fm_schema out;
    struct fm_error error;
    char *text = repeat("{\"oneOf\":[{\"type\":\"null\"}",
                        ",{\"type\":\"object\",\"required\":[\"k\"],\"properties\":{\"k\":{\"const\":#}}}", 990, "]}");
    assert_int_equal(prepare(text, false, &out, &error), FM_OK);
    assert_false(out.exact); /* half a million pairs of objects exceed the budget */
    fm_schema_free(&out);
    free(text);
    char *body = repeat("", "x", 900, "");
    char *each = repeat(",{\"const\":\"", body, 1, "#\"}");
    text = repeat("{\"oneOf\":[{\"type\":\"null\"}", each, 500, "]}");
    assert_int_equal(prepare(text, false, &out, &error), FM_OK);
    assert_false(out.exact); /* this number of pairs is accepted above, but these values are 900 bytes long */
    fm_schema_free(&out);
    free(text);
    free(each);
    free(body);
    char *one = repeat("{\"$defs\":{\"a\":{\"enum\":[\"\"", ",#", 499, "]},\"b\":{\"enum\":[null");
    char *other = repeat(one, ",7000#", 499, "]}},\"anyOf\":[true");
    for (size_t count = 3; count < 6; count += 2) { /* each oneOf takes 250,000 comparisons */
        text =
            repeat(other, ",{\"oneOf\":[{\"$ref\":\"\\u0023/$defs/a\"},{\"$ref\":\"\\u0023/$defs/b\"}]}", count, "]}");
        assert_int_equal(prepare(text, false, &out, &error), FM_OK);
        assert_int_equal(out.exact, count == 3);
        fm_schema_free(&out);
        free(text);
    }
    free(other);
    free(one);
}

/* Keys with a long common beginning are sorted: comparing two million pairs would be too slow. */
static void test_many_pattern_properties(void **state) {
    (void)state;
    static const struct {
        const char *last;
        bool exact;
    } cases[] = {{"\"^b\":{}}}", true}, {"\"^aa\":{}}}", false}, {"\"b\":{}}}", false}};
    char *body = repeat("\"^", "a", 400, "-#x\":{},");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fm_schema out;
        struct fm_error error;
        char *text = repeat("{\"patternProperties\":{", body, 2000, cases[i].last);
        assert_int_equal(prepare(text, false, &out, &error), FM_OK);
        assert_int_equal(out.exact, cases[i].exact);
        fm_schema_free(&out);
        free(text);
    }
    free(body);
}

/* ---- patterns ---- */

#define UNWR "\\x{0}-\\x{7}\\x{B}\\x{E}-\\x{1F}\\x{7F}"
#define DOT  "[^\\x{A}\\x{D}\\x{2028}\\x{2029}" UNWR "]"
#define SPACE                                                                                                          \
    "\\x{9}\\x{A}\\x{C}\\x{D} "                                                                                        \
    "\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}\\x{FEFF}"

static const struct {
    const char *pattern;
    enum fm_pattern kind;
    const char *expected; /* FM_PATTERN_OK */
} patterns[] = {
    {"", FM_PATTERN_OK, ""},
    {"^ab1<> \xC3\xA9$", FM_PATTERN_OK, "^ab1<> \\x{E9}$"},
    {"a.b", FM_PATTERN_OK, "a" DOT "b"},
    {"\\d\\D\\w\\W\\s\\S", FM_PATTERN_OK,
     "[0-9][[^0-9" UNWR "]][0-9A-Za-z_][[^0-9A-Za-z_" UNWR "]][" SPACE "][[^" SPACE UNWR "]]"},
    {"[\\d\\Dx]", FM_PATTERN_OK, "[0-9[^0-9" UNWR "]x]"},
    {"[^a-z&&[~~-]", FM_PATTERN_OK, "[^a-z\\&\\&\\[\\~\\~\\-" UNWR "]"},
    {"[+--]", FM_PATTERN_OK, "[\\+-\\-]"},
    {"[a-]", FM_PATTERN_OK, "[a\\-]"},
    {"[\\b\\]]", FM_PATTERN_OK, "[\\x{8}\\]]"},
    {"a#/-_]}", FM_PATTERN_OK, "a\\#\\/\\-\\_\\]\\}"},
    {"\\t\\n\\f\\r\\x41\\u0042\\u{1F600}\\uD83D\\uDE00\\cJ\\.\\/", FM_PATTERN_OK,
     "\\x{9}\\x{A}\\x{C}\\x{D}AB\\x{1F600}\\x{1F600}\\x{A}\\.\\/"},
    {"\\p{L}[\\p{Nd}\\P{Zs}]", FM_PATTERN_OK, "\\p{L}[\\p{Nd}[^\\p{Zs}" UNWR "]]"},
    /* without the characters that are written as \uXXXX */
    {"[^\"]", FM_PATTERN_OK, "[^\\\"" UNWR "]"},
    {"\\P{L}", FM_PATTERN_OK, "[^\\p{L}" UNWR "]"},
    {"[\\x00-\\x1f]", FM_PATTERN_OK, "[\\x{8}-\\x{A}\\x{C}-\\x{D}]"},
    {"[\\x06-\\x08\\x0ba]", FM_PATTERN_OK, "[\\x{8}a]"},
    {"[x-\\x81]", FM_PATTERN_OK, "[x-\\~\\x{80}-\\x{81}]"},
    {"[\\x00-\\u{10FFFF}]", FM_PATTERN_OK, "[\\x{8}-\\x{A}\\x{C}-\\x{D} -\\~\\x{80}-\\x{10FFFF}]"},
    {"[\\x01\\v\\x0e-\\x1f]", FM_PATTERN_UNABLE, NULL},
    {"^a\\x01$", FM_PATTERN_UNABLE, NULL},
    {"^a\\0b$", FM_PATTERN_UNABLE, NULL},
    {"^\\vb$", FM_PATTERN_UNABLE, NULL},
    {"\\x7f", FM_PATTERN_UNABLE, NULL},
    {"\x7f", FM_PATTERN_UNABLE, NULL},
    {"\\cA", FM_PATTERN_UNABLE, NULL},
    {"(?:a|b)(c)(?<stop>d)", FM_PATTERN_OK, "(?:a|b)(?:c)(?:d)"},
    {"a*b+c?d{2}e{2,}f{2,3}", FM_PATTERN_OK, "a*b+c?d{2,2}e{2,}f{2,3}"},
    {"a*?b+?c??d{2}?", FM_PATTERN_OK, "a*b+c?d{2,2}"},
    {"^a|b$|^c$|", FM_PATTERN_OK, "^a|b$|^c$|"},
    {"(^a|b)c", FM_PATTERN_OK, "(?:^a|b)c"},
    {"((^a$)|b$)", FM_PATTERN_OK, "(?:(?:^a$)|b$)"},
    {"(a{100}){100}", FM_PATTERN_OK, "(?:a{100,100}){100,100}"},
    {"(a{101}b?){100}", FM_PATTERN_UNABLE, NULL},
    {"a{10001}", FM_PATTERN_UNABLE, NULL},
    {"a{99999999999999999999}", FM_PATTERN_UNABLE, NULL},
    {"(?=a)", FM_PATTERN_UNABLE, NULL},
    {"(?!a)", FM_PATTERN_UNABLE, NULL},
    {"(?<=a)", FM_PATTERN_UNABLE, NULL},
    {"(?<!a)", FM_PATTERN_UNABLE, NULL},
    {"(?i:a)", FM_PATTERN_UNABLE, NULL},
    {"(?P<a>b)", FM_PATTERN_UNABLE, NULL},
    {"(a)\\1", FM_PATTERN_UNABLE, NULL},
    {"(?<a>b)\\k<a>", FM_PATTERN_UNABLE, NULL},
    {"\\ba", FM_PATTERN_UNABLE, NULL},
    {"a\\B", FM_PATTERN_UNABLE, NULL},
    {"a^b", FM_PATTERN_UNABLE, NULL},
    {"a(^b)", FM_PATTERN_UNABLE, NULL},
    {"a$b", FM_PATTERN_UNABLE, NULL},
    {"(a$)b", FM_PATTERN_UNABLE, NULL},
    {"(a$|b)*", FM_PATTERN_UNABLE, NULL},
    {"(^a)?b", FM_PATTERN_UNABLE, NULL},
    {"[]", FM_PATTERN_UNABLE, NULL},
    {"[^]", FM_PATTERN_UNABLE, NULL},
    {"\\uD83D", FM_PATTERN_UNABLE, NULL},
    {"\\p{Script=Greek}", FM_PATTERN_UNABLE, NULL},
    {"(", FM_PATTERN_WRONG, NULL},
    {")", FM_PATTERN_WRONG, NULL},
    {"(?<a", FM_PATTERN_WRONG, NULL},
    {"[a", FM_PATTERN_WRONG, NULL},
    {"[z-a]", FM_PATTERN_WRONG, NULL},
    {"[\\d-z]", FM_PATTERN_WRONG, NULL},
    {"[a-\\d]", FM_PATTERN_WRONG, NULL},
    {"*a", FM_PATTERN_WRONG, NULL},
    {"a**", FM_PATTERN_WRONG, NULL},
    {"^*", FM_PATTERN_WRONG, NULL},
    {"(|*)", FM_PATTERN_WRONG, NULL},
    {"a{", FM_PATTERN_WRONG, NULL},
    {"a{,3}", FM_PATTERN_WRONG, NULL},
    {"a{3,2}", FM_PATTERN_WRONG, NULL},
    {"\\", FM_PATTERN_WRONG, NULL},
    {"[\\", FM_PATTERN_WRONG, NULL},
    {"\\e", FM_PATTERN_WRONG, NULL},
    {"\\x4", FM_PATTERN_WRONG, NULL},
    {"\\u{110000}", FM_PATTERN_WRONG, NULL},
    {"\\u{41", FM_PATTERN_WRONG, NULL},
    {"\\00", FM_PATTERN_WRONG, NULL},
    {"(((((((((((((((((((((((((((((((((a)))))))))))))))))))))))))))))))))", FM_PATTERN_WRONG, NULL},
};

static void test_patterns(void **state) {
    (void)state;
    struct fm_buf out;
    fm_buf_init(&out, 1u << 20);
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        const char *reason;
        const char *pattern = patterns[i].pattern;
        enum fm_pattern kind = fm_pattern_translate(pattern, strlen(pattern), &out, &reason);
        if (kind != patterns[i].kind) {
            fail_msg("%s: expected %d, got %d", pattern, patterns[i].kind, kind);
        }
        assert_int_equal(reason == NULL, kind == FM_PATTERN_OK);
        if (kind == FM_PATTERN_OK) {
            fm_buf_append_char(&out, '\0');
            assert_string_equal(out.data, patterns[i].expected);
        }
    }
    fm_buf_free(&out);
}

static void test_disjoint_patterns(void **state) {
    (void)state;
    static const struct {
        const char *one;
        const char *other;
        bool disjoint;
    } pairs[] = {
        {"^a", "^b", true},      {"^ab", "^ac.*", true}, {"^ab", "^a", false},       {"^ab*", "^ac", false},
        {"^ab?c", "^ad", false}, {"a", "^b", false},     {"^a|c", "^b", false},      {"^(a)", "^b", false},
        {"", "", false},         {"^", "^a", false},     {"^a_1-$", "^a_1x$", true}, {"^a{0}", "^b", false},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_int_equal(fm_pattern_disjoint(pairs[i].one, pairs[i].other), pairs[i].disjoint);
        assert_int_equal(fm_pattern_disjoint(pairs[i].other, pairs[i].one), pairs[i].disjoint);
    }
}

/* ---- formats ---- */

static const struct {
    const char *format;
    const char *valid[6];
    const char *invalid[8];
} formats[] = {
    {"date",
     {"2023-02-28", "2024-02-29", "2000-02-29", "1999-12-31", "2023-04-30"},
     {"2023-02-29", "1900-02-29", "2024-02-30", "2023-04-31", "2023-13-01", "2023-00-10", "2023-1-01", "02023-01-01"}},
    {"time",
     {"00:00:00Z", "23:59:59.123+23:59", "12:00:00-00:30"},
     {"24:00:00Z", "12:60:00Z", "12:00:60Z", "12:00:00", "12:00Z", "12:00:00.Z", "12:00:00+24:00", "12:00:00z"}},
    {"date-time",
     {"2024-02-29T23:59:59.5Z"},
     {"2023-02-29T00:00:00Z", "2023-01-01 00:00:00Z", "2023-01-01", "T00:00:00Z"}},
    {"duration",
     {"P1Y2M3DT4H5M6S", "P1W", "PT1S", "P1D", "PT1H", "P1M"},
     {"P", "PT", "P1YT", "P1H", "1D", "P1W2D", "P1Y3D", "PT1H6S"}},
    {"email",
     {"a@b.example", "a.b+c@x-y.example.com"},
     {"a@b", "a.@b.example", ".a@b.example", "a b@c.example", "a@-b.example", "a@b-.example", "@b.example",
      "a@b..example"}},
    {"hostname", {"a", "a-b.example", "1.2.3"}, {"", "-a", "a-", "a..b", ".a", "a.", "a_b", "ab--cd"}},
    {"ipv4", {"0.0.0.0", "255.249.199.99"}, {"256.0.0.0", "01.0.0.0", "1.1.1", "1.1.1.1.1", "1.1.1.", " 1.1.1.1"}},
    {"ipv6",
     {"::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2::7:8", "fe80::aBcD"},
     {":", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3",
      "12345::", "g::", "1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8"}},
    {"uuid",
     {"123e4567-E89B-42d3-a456-426614174000"},
     {"123e4567e89b42d3a456426614174000", "123e4567-e89b-42d3-a456-42661417400",
      "{123e4567-e89b-42d3-a456-426614174000}"}},
    {"uri",
     {"https://user:pw@example.com:80/a/b?q=1#f", "mailto:a@b.example", "urn:x:y", "a:b/c", "http://1.2.3.4", "a:%20"},
     {"//example.com", "a b:c", "a:", "http://a b", "1a:b", "a:%2", "http:///x", "a:\\"}},
    {"json-pointer", {"", "/", "/a/~0~1/ b"}, {"a", "/~", "/~2"}},
};

/* POSIX's extended expressions support everything except groups without a number. */
static bool matches(const char *pattern, const char *text) {
    char plain[4096];
    size_t len = 0;
    for (const char *c = pattern; *c; c++) {
        plain[len++] = *c;
        c += c[0] == '(' && c[1] == '?' ? 2 : 0;
    }
    plain[len] = '\0';
    regex_t regex;
    assert_int_equal(regcomp(&regex, plain, REG_EXTENDED | REG_NOSUB), 0);
    bool match = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return match;
}

static void test_formats(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        const char *pattern = fm_format_pattern(formats[i].format);
        assert_non_null(pattern);
        for (size_t j = 0; j < 6 && formats[i].valid[j]; j++) {
            if (!matches(pattern, formats[i].valid[j])) {
                fail_msg("%s: %s is one", formats[i].format, formats[i].valid[j]);
            }
        }
        for (size_t j = 0; j < 8 && formats[i].invalid[j]; j++) {
            if (matches(pattern, formats[i].invalid[j])) {
                fail_msg("%s: %s is none", formats[i].format, formats[i].invalid[j]);
            }
        }
    }
    assert_null(fm_format_pattern("regex"));
}

/* ---- memory ---- */

#ifdef WRAPPED
static void test_each_allocation(void **state) {
    (void)state;
    struct json_object *schema =
        json_of("{'$id':'r','type':'object','properties':{'a':{'$ref':'#/$defs/a'},'b':{'$ref':'#b'},'c':{'not':{}},"
                "'d':{'pattern':'^a'},'e':{'format':'date','pattern':'2'},'f':{'$ref':'#/$defs/a/"
                "items'}},'$defs':{'a':{'items':{'$ref':'#'}},'b':"
                "{'$anchor':'b'}}}");
    struct fm_schema out;
    struct fm_error error;
    int failed = 0;
    for (;; failed++) {
        error = (struct fm_error){0};
        allocations_left = failed;
        enum fm_code code = fm_schema_prepare(schema, false, &out, &error);
        bool spent = allocations_left < 0;
        allocations_left = -1;
        if (code == FM_OK) {
            assert_false(spent);
            break;
        }
        assert_int_equal(code, FM_INTERNAL);
        assert_int_equal(error.code, FM_INTERNAL);
        assert_null(out.guide.data);
        assert_true(failed < 1000);
    }
    assert_true(failed > 20);
    fm_schema_free(&out);
    json_object_put(schema);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keywords),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_long_path_is_cut),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_ref_depth),
        cmocka_unit_test(test_many_checked),
        cmocka_unit_test(test_large_one_of),
        cmocka_unit_test(test_many_pattern_properties),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_disjoint_patterns),
        cmocka_unit_test(test_formats),
#ifdef WRAPPED
        cmocka_unit_test(test_each_allocation),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

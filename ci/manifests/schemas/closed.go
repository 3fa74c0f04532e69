package main

// Keys under which schemas stand by name, in a list, and alone.
var (
	byName = map[string]bool{"properties": true, "patternProperties": true, "definitions": true}
	listed = map[string]bool{"allOf": true, "anyOf": true, "oneOf": true}
	single = map[string]bool{"items": true, "additionalProperties": true, "not": true}
	// What JSON schema says otherwise or not at all.
	dropped = map[string]bool{
		"nullable": true, "exclusiveMinimum": true, "exclusiveMaximum": true, "example": true, "format": true,
		"description": true,
	}
)

// The schema in the words of JSON schema; an object takes only the properties that it names.
func closed(open schema) schema { return closedAt(open, true) }

// Below `allOf` and its like a schema states conditions on an object that is described elsewhere: it must
// not be closed there.
func closedAt(open schema, isWhole bool) schema {
	result := schema{}
	for key, value := range open {
		switch {
		case dropped[key] || len(key) > 13 && key[:13] == "x-kubernetes-":
		case byName[key]:
			below := schema{}
			for name, part := range asSchema(value) {
				below[name] = closedAt(asSchema(part), isWhole)
			}
			result[key] = below
		case listed[key]:
			parts, _ := value.([]any)
			below := make([]any, len(parts))
			for i, part := range parts {
				below[i] = closedAt(asSchema(part), false)
			}
			result[key] = below
		case single[key]:
			if part, isSchema := value.(schema); isSchema {
				result[key] = closedAt(part, isWhole && key != "not")
			} else {
				result[key] = value
			}
		default:
			result[key] = value
		}
	}
	_, hasProperties := open["properties"]
	_, saysMore := open["additionalProperties"]
	if isWhole && hasProperties && !saysMore && open["x-kubernetes-preserve-unknown-fields"] != true {
		result["additionalProperties"] = false
	}
	if open["x-kubernetes-int-or-string"] == true {
		delete(result, "type")
	}
	if open["nullable"] == true {
		result = schema{"anyOf": []any{schema{"type": "null"}, result}}
	}
	return result
}

func asSchema(value any) schema {
	found, _ := value.(schema)
	return found
}

// Prints how Go formats JSON values. In: a JSON value for each line of stdin. Out: a list for each: the line, %v, %#v, %T.
// Run by tools/record_go_format.py.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// toTyped gives numbers the types that the JSON decoder of Kubernetes gives them.
func toTyped(value interface{}) interface{} {
	switch typed := value.(type) {
	case json.Number:
		if integer, err := typed.Int64(); err == nil {
			return integer
		}
		float, _ := typed.Float64()
		return float
	case map[string]interface{}:
		for name, inner := range typed {
			typed[name] = toTyped(inner)
		}
	case []interface{}:
		for index, inner := range typed {
			typed[index] = toTyped(inner)
		}
	}
	return value
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		decoder := json.NewDecoder(strings.NewReader(lines.Text()))
		decoder.UseNumber()
		var value interface{}
		if err := decoder.Decode(&value); err != nil {
			panic(err)
		}
		value = toTyped(value)
		row := []string{lines.Text(), fmt.Sprintf("%v", value), fmt.Sprintf("%#v", value), fmt.Sprintf("%T", value)}
		if err := encoder.Encode(row); err != nil {
			panic(err)
		}
	}
}

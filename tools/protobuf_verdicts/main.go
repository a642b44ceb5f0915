// Says what Kubernetes' own decoder makes of protobuf bodies.
// In: lines of base64. Out: for each a line, "refused" or the SHA-256 of the object's JSON with sorted keys.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

func verdict(decoder runtime.Decoder, body []byte) (said string) {
	defer func() {
		if problem := recover(); problem != nil {
			said = "panicked"
		}
	}()
	object, kind, err := decoder.Decode(body, nil, nil)
	if err != nil {
		return "refused"
	}
	object.GetObjectKind().SetGroupVersionKind(*kind)
	text, err := json.Marshal(object)
	if err != nil {
		return "unwritable"
	}
	if os.Getenv("SHOW") != "" {
		return string(text)
	}
	reader := json.NewDecoder(bytes.NewReader(text))
	reader.UseNumber()
	var value any
	if err := reader.Decode(&value); err != nil {
		return "unwritable"
	}
	sorted := &bytes.Buffer{}
	writer := json.NewEncoder(sorted)
	writer.SetEscapeHTML(false)
	if err := writer.Encode(value); err != nil {
		return "unwritable"
	}
	return fmt.Sprintf("%x", sha256.Sum256(bytes.TrimSpace(sorted.Bytes())))[:16]
}

func main() {
	extensions.AddToScheme(scheme.Scheme)
	decoder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(make([]byte, 1<<20), 1<<26)
	for lines.Scan() {
		body, err := base64.StdEncoding.DecodeString(lines.Text())
		if err != nil {
			panic(err)
		}
		fmt.Println(verdict(decoder, body))
	}
}

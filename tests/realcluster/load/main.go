// Load makes Kubernetes API requests as fast as a server answers them, and prints what it measured as one JSON object.
//
// It uses the standard library only, keeps its connections, and reports its own CPU time, so that one can see
// whether it was the limit.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const warmUp = 3 // requests of each client that are not counted: they make the connections

var (
	server    = flag.String("server", "", "URL of the server")
	authority = flag.String("ca", "", "file with its authority's certificate")
	token     = flag.String("token", "", "bearer token")
	mode      = flag.String("mode", "", "create, get, list or event")
	clients   = flag.Int("clients", 1, "how many ask at the same time")
	count     = flag.Int("count", 1000, "how many requests in all")
	rate      = flag.Int("rate", 50, "creates per second, for event")
	namespace = flag.String("namespace", "default", "where the ConfigMaps are")
	prefix    = flag.String("prefix", "c", "how their names begin")
	modulus   = flag.Int("among", 1000, "how many of them there are, for get")
	http2     = flag.Bool("http2", false, "HTTP/2 instead of HTTP/1.1")
	gzip      = flag.Bool("gzip", false, "accept compressed answers")
	size      = flag.Int("size", 200, "bytes of data in a ConfigMap")
)

// Report is what is printed; times are milliseconds.
type Report struct {
	Mode      string  `json:"mode"`
	Protocol  string  `json:"protocol"`
	Clients   int     `json:"clients"`
	Count     int     `json:"count"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"perSecond"`
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
	Bytes     int64   `json:"bytes"`
	ClientCPU float64 `json:"clientCpuPerOperation"`
}

func main() {
	flag.Parse()
	client := newClient()
	var took []time.Duration
	var read atomic.Int64
	protocol, begin := connect(client), time.Now()
	cpu := cpuTime()
	switch *mode {
	case "create", "get", "list":
		took = closedLoop(client, &read)
	case "event":
		took = events(client)
	default:
		fail(fmt.Errorf("no such mode: %q", *mode))
	}
	seconds, cpu := time.Since(begin).Seconds(), cpuTime()-cpu
	sort.Slice(took, func(a, b int) bool { return took[a] < took[b] })
	at := func(part float64) float64 {
		return float64(took[int(part*float64(len(took)-1))].Microseconds()) / 1000
	}
	report := Report{*mode, protocol, *clients, *count, seconds, float64(*count) / seconds,
		at(0.5), at(0.99), read.Load() / int64(*count), cpu / float64(*count) * 1000}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		fail(err)
	}
}

func newClient() *http.Client {
	pem, err := os.ReadFile(*authority)
	if err != nil {
		fail(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: pool},
		MaxIdleConnsPerHost: *clients + 1,
		DisableCompression:  !*gzip,
		ForceAttemptHTTP2:   *http2,
	}
	if !*http2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return &http.Client{Transport: transport}
}

// connect warms every client's connection up, and says what protocol was agreed on.
func connect(client *http.Client) string {
	var group sync.WaitGroup
	var protocol atomic.Value
	for range *clients {
		group.Add(1)
		go func() {
			defer group.Done()
			for range warmUp {
				request := newRequest("GET", "/api/v1/namespaces/"+*namespace, nil)
				answer, err := client.Do(request)
				if err != nil {
					fail(err)
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				protocol.Store(answer.Proto)
			}
		}()
	}
	group.Wait()
	return protocol.Load().(string)
}

// closedLoop lets each client ask again as soon as it was answered, until all requests are made.
func closedLoop(client *http.Client, read *atomic.Int64) []time.Duration {
	took := make([]time.Duration, *count)
	var next atomic.Int64
	var group sync.WaitGroup
	for range *clients {
		group.Add(1)
		go func() {
			defer group.Done()
			buffer := make([]byte, 64<<10)
			for {
				number := int(next.Add(1)) - 1
				if number >= *count {
					return
				}
				begin := time.Now()
				read.Add(ask(client, number, buffer))
				took[number] = time.Since(begin)
			}
		}()
	}
	group.Wait()
	return took
}

func ask(client *http.Client, number int, buffer []byte) int64 {
	path := "/api/v1/namespaces/" + *namespace + "/configmaps"
	var request *http.Request
	wanted := http.StatusOK
	switch *mode {
	case "create":
		request, wanted = newRequest("POST", path, configMap(number)), http.StatusCreated
	case "get":
		request = newRequest("GET", fmt.Sprintf("%s/%s-%d", path, *prefix, number%*modulus), nil)
	case "list":
		request = newRequest("GET", path, nil)
	}
	answer, err := client.Do(request)
	if err != nil {
		fail(err)
	}
	defer answer.Body.Close()
	bytes, err := io.CopyBuffer(discard{}, answer.Body, buffer)
	if err != nil {
		fail(err)
	}
	if answer.StatusCode != wanted {
		fail(fmt.Errorf("%s %s: %s", request.Method, request.URL, answer.Status))
	}
	return bytes
}

// discard has no ReadFrom, so that io.CopyBuffer uses its buffer.
type discard struct{}

func (discard) Write(data []byte) (int, error) { return len(data), nil }

// events creates at an even rate, and measures from before each request is sent to when its event was read.
func events(client *http.Client) []time.Duration {
	path := "/api/v1/namespaces/" + *namespace + "/configmaps"
	begun := make([]time.Time, *count)
	took := make([]time.Duration, *count)
	sent := make([]chan struct{}, *count)
	for number := range sent {
		sent[number] = make(chan struct{})
	}
	seen := make(chan struct{})
	answer, err := client.Do(newRequest("GET", path+"?watch=1&resourceVersion="+listVersion(client, path), nil))
	if err != nil {
		fail(err)
	}
	go func() {
		defer close(seen)
		lines := bufio.NewReaderSize(answer.Body, 64<<10)
		for left := *count; left > 0; {
			line, err := lines.ReadBytes('\n')
			now := time.Now()
			if err != nil {
				fail(err)
			}
			if number, ok := numberOf(line); ok {
				<-sent[number]
				took[number] = now.Sub(begun[number])
				left--
			}
		}
	}()
	var group sync.WaitGroup
	ticker := time.NewTicker(time.Second / time.Duration(*rate))
	defer ticker.Stop()
	for number := range *count {
		<-ticker.C
		group.Add(1)
		go func() {
			defer group.Done()
			request := newRequest("POST", path, configMap(number))
			begun[number] = time.Now()
			close(sent[number])
			created, err := client.Do(request)
			if err != nil {
				fail(err)
			}
			_, _ = io.Copy(io.Discard, created.Body)
			created.Body.Close()
			if created.StatusCode != http.StatusCreated {
				fail(fmt.Errorf("create: %s", created.Status))
			}
		}()
	}
	group.Wait()
	<-seen
	answer.Body.Close()
	return took
}

func listVersion(client *http.Client, path string) string {
	answer, err := client.Do(newRequest("GET", path+"?limit=1", nil))
	if err != nil {
		fail(err)
	}
	defer answer.Body.Close()
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&list); err != nil {
		fail(err)
	}
	return list.Metadata.ResourceVersion
}

// numberOf finds which ConfigMap an event is about without decoding it.
func numberOf(line []byte) (int, bool) {
	mark := []byte(`"name":"` + *prefix + "-")
	at := bytes.Index(line, mark)
	if at < 0 {
		return 0, false
	}
	number := 0
	for _, digit := range line[at+len(mark):] {
		if digit < '0' || digit > '9' {
			break
		}
		number = number*10 + int(digit-'0')
	}
	return number, number < *count
}

func configMap(number int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s-%d"},"data":{"text":"%s"}}`,
		*prefix, number, strings.Repeat("x", *size))
}

func newRequest(method, path string, body []byte) *http.Request {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	request, err := http.NewRequestWithContext(context.Background(), method, *server+path, reader)
	if err != nil {
		fail(err)
	}
	request.Header.Set("Authorization", "Bearer "+*token)
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request
}

// cpuTime is this process's own, in seconds.
func cpuTime() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		fail(err)
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "load:", err)
	os.Exit(1)
}

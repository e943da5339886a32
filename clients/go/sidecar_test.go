package turnledger_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// sidecar is a real one in a process of its own.
type sidecar struct {
	t      *testing.T
	folder string
	target string
	cmd    *exec.Cmd
}

// newSidecar starts one; it ends with the test. The interpreter is TURNLEDGER_PYTHON's, or the checkout's own.
func newSidecar(t *testing.T) *sidecar {
	t.Helper()
	folder, err := os.MkdirTemp("", "tl-go-") // short enough for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	s := &sidecar{t: t, folder: folder, target: "unix://" + filepath.Join(folder, "s")}
	s.start()
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	return s
}

func (s *sidecar) start() {
	s.t.Helper()
	python, root := os.Getenv("TURNLEDGER_PYTHON"), "../.."
	if python == "" {
		python, _ = filepath.Abs(root + "/.venv/bin/python")
	}
	s.cmd = exec.Command(python, "-m", "sidecar", "serve", "--listen", s.target,
		"--store", filepath.Join(s.folder, "store.db"), "--health", "127.0.0.1:0")
	s.cmd.Dir = root
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("the sidecar could not be started: %v; run `make test` once, or set TURNLEDGER_PYTHON", err)
	}
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("unix", filepath.Join(s.folder, "s")); err == nil {
			conn.Close()
			return
		}
	}
	s.t.Fatal("the sidecar did not come up")
}

func (s *sidecar) end(signal syscall.Signal) {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(signal)
		_ = s.cmd.Wait()
	}
}

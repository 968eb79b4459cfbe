"""Messages of the library in the words of the command line."""


def test_messages_speak_of_flags():
    from dynaesti.cli.messages import as_flags

    assert (
        as_flags("use bandwidth=inf or direction='free'; rare=10")
        == "use --bandwidth inf or --direction free; --rare 10"
    )
    assert as_flags("did you mean id='student'?") == "did you mean --id student?"
    assert as_flags("write over it with force=True (--force)") == "write over it with --force"
    assert as_flags("a plain sentence, model and all") == "a plain sentence, model and all"
